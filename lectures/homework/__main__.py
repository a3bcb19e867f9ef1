"""python -m lectures.homework student, or teacher and a seed: into build/student and build/teacher."""

import sys

from lectures.handout import print_sheets
from lectures.homework.build import ROOT, student, teacher

if __name__ == "__main__":
    whose, *seed = sys.argv[1:]
    out = ROOT / "build" / whose
    student(out) if whose == "student" else teacher(out, int(*seed))
    print_sheets(out)
    names = sorted(path.name for path in out.iterdir() if path.name[0] not in "._")
    print(f"In build/{whose}: {', '.join(names)}")
