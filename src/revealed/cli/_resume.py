"""Runs that were interrupted: what is said of them, and whether one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from revealed.cli._shared import print_message


def made_so_far(post: Any, draws: int) -> str | None:
    """How far an interrupted run has come, in words; None where it was run to its end."""
    missing = getattr(post, "not_fitted", ())
    if missing:
        return f"after {len(post)} of {len(post) + len(missing)} groups"
    n_draws = post.shape[1]
    return None if n_draws >= draws else f"after {n_draws} of {draws} draws a chain"


def refuse_other_checkpoint(checkpoint: Path, separate: bool, resume: bool) -> None:
    """Refuse what lies where the checkpoint should go, and is not to be written over.

    A folder has the finished posteriors of many groups, which are only removed by hand.
    """
    if checkpoint.is_dir() and not (separate and resume):
        raise ValueError(
            f"the folder {checkpoint} is from separate groups that were interrupted; "
            "--groups separate --resume continues them, or remove it"
        )
    if separate and checkpoint.is_file():
        raise ValueError(
            f"{checkpoint} is from a run without separate groups that was interrupted; continue "
            "that, or remove it"
        )


def can_resume(out: Path, checkpoint: Path, resume: bool) -> bool:
    """Whether there is a checkpoint to resume from, if that was asked for.

    Whoever starts afresh beside a checkpoint, or resumes without one, is told so; a finished
    posterior is never overwritten by a resumed run that cannot resume.
    """
    # A run that starts afresh overwrites the checkpoint of another.
    if checkpoint.exists() and not resume:
        print_message(
            f"note: starting afresh; {checkpoint} is from a run that was interrupted, "
            "and --resume would continue it"
        )
    # A finished posterior has no checkpoint: resuming it would compute it again.
    if resume and not checkpoint.exists():
        if out.exists():
            raise ValueError(
                f"there is no checkpoint {checkpoint} to resume from, and {out} is there already; "
                "leave out --resume to learn it afresh"
            )
        print_message(f"note: starting afresh; there is no checkpoint {checkpoint} to resume from")
        return False
    return resume
