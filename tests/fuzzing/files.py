"""Damaged files of every kind, opened and used."""

import traceback
import warnings

import numpy as np

from fuzzing.subjects import WrongError, subjects


class Files:
    """Cases of damaged files.

    Args:
        folder: Where they are written.
    """

    def __init__(self, folder):
        self.folder, self.subjects = folder, subjects(folder)

    def make(self, case):
        """Write the file of a case; return its kind and where it is."""
        rng = np.random.default_rng([0xF11E, case])
        subject = self.subjects[int(rng.integers(len(self.subjects)))]
        path = self.folder / subject.file
        path.write_bytes(subject.mutant(rng))
        return subject.name, (subject, path)

    def judge(self, made):
        """Return what became of a file, in a word, and why."""
        subject, path = made
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                subject.use(path)
            return "used", ""
        except (ValueError, FileNotFoundError) as error:
            if isinstance(error, UnicodeError) or not str(error).strip():
                return "no sentence", repr(error)
            # What is whole may still not go with what it is used with; that names no file.
            return ("refused" if path.name in str(error) else "unfit"), str(error)
        except WrongError as error:
            return "wrong", str(error)
        except TimeoutError:
            return "hung", ""
        except BaseException:
            return "traceback", traceback.format_exc()
