"""What the book proves and compares with; no model needs it. It imports rope_lib, and rope_lib never imports it."""
