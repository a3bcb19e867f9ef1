"""Speed, beside a copy and beside other libraries, and one text over several processes. Nothing imports this room."""
