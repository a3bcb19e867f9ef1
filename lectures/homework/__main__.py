"""python -m lectures.homework student, or teacher, a seed and a version of the exam: into build/student, build/teacher.

Version B goes into build/teacher-B.
"""

import sys

from lectures.handout import print_sheets
from lectures.homework.build import ROOT, student, teacher

if __name__ == "__main__":
    whose, *drawn = sys.argv[1:]
    out = ROOT / "build" / whose
    if whose == "student":
        student(out)
    else:
        seed, version = drawn
        out = out if version == "A" else out.with_name(f"{whose}-{version}")
        try:
            teacher(out, int(seed), version)
        except ValueError as error:
            sys.exit(f"Error: {error}")
    print_sheets(out)
    names = sorted(path.name for path in out.iterdir() if path.name[0] not in "._")
    print(f"In build/{out.name}: {', '.join(names)}")
