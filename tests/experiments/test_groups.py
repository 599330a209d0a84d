"""Which jobs train side by side, and in which order groups are handed out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.execution import checkpoints
from embinit.experiments.jobs import Group, Job, read_jobs
from tests.experiments.made import planned


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planned(tmp_path_factory.mktemp("plan"))


def test_a_group_with_a_checkpoint_stays_together_when_a_part_is_written(jobs: Path, tmp_path: Path) -> None:
    plan = read_jobs(jobs).jobs
    group = Group(plan[:3])
    folder = checkpoints.folder_of(tmp_path, group)
    checkpoints.announce(folder, group)
    written = tmp_path / plan[0].key
    written.mkdir()
    (written / "run.json").touch()
    assert [len(one.jobs) for one in checkpoints.groups_of(plan, tmp_path, None, "cpu")] == [3]
    (folder / "state").mkdir()
    (folder / "state" / "checkpoint").touch()
    sizes = [len(one.jobs) for one in checkpoints.groups_of(plan, tmp_path, None, "cpu")]
    assert sizes == [3, 1]
    assert checkpoints.groups_of(plan, tmp_path, None, "cpu")[0].keys == group.keys


def test_a_card_keeps_members_together_where_workers_have_groups_enough(jobs: Path, tmp_path: Path) -> None:
    plan = read_jobs(jobs).jobs
    other = tuple(
        replace(
            job, key=f"{job.key[:-1]}x", spec=replace(job.spec, training=(*job.spec.training, ("order", "bucketed")))
        )
        for job in plan
    )
    sizes = {
        (device, shapes): [len(one.jobs) for one in checkpoints.groups_of(some, tmp_path, None, device, workers=2)]
        for device in ("cpu", "cuda")
        for shapes, some in ((1, plan), (2, plan + other))
    }
    assert sizes == {("cpu", 1): [2, 2], ("cpu", 2): [2, 2, 2, 2], ("cuda", 1): [2, 2], ("cuda", 2): [4, 4]}
    small = checkpoints.groups_of(plan + other[:2], tmp_path, None, "cuda", workers=3)
    assert [len(one.jobs) for one in small] == [2, 2, 2]  # two members of one shape are a worker's share already


def test_runs_that_differ_in_settings_that_change_no_shape_train_side_by_side(jobs: Path, tmp_path: Path) -> None:
    plan = read_jobs(jobs).jobs

    def changed(part: str, **settings: object) -> tuple[Job, ...]:
        values = tuple({**dict(getattr(plan[0].spec, part)), **settings}.items())
        return tuple(
            replace(job, key=f"{job.key} {settings}", spec=replace(job.spec, **{part: values})) for job in plan
        )

    own: list[dict[str, object]] = [
        {"embedding_rate": 0.1}, {"embedding_rate": 0.5, "found_rate": 0.0}, {"rate": 1e-3}, {"weight_decay": 0.1},
        {"warmup": 9, "schedule": "cosine"}, {"smoothing": 0.1}, {"frozen_epochs": 1}, {"frozen_rows": "found"},
    ]  # fmt: skip
    sweep = [changed("training", **one) for one in own] + [changed("model", dropout=rate) for rate in (0.0, 0.3)]
    together = checkpoints.groups_of(sum(sweep, plan), tmp_path, None, "cuda")
    assert [len(one.jobs) for one in together] == [4 * 11]
    for part, name, value in (("training", "batch", 3), ("training", "epochs", 9), ("model", "feedforward", 48)):
        apart = checkpoints.groups_of(plan + changed(part, **{name: value}), tmp_path, None, "cuda")
        assert [len(one.jobs) for one in apart] == [4, 4], name


def test_several_workers_get_the_longest_groups_first_and_one_the_files_order(jobs: Path, tmp_path: Path) -> None:
    plan = read_jobs(jobs).jobs
    epochs = dict(plan[0].spec.training)["epochs"]
    longer = tuple(
        replace(
            job,
            key=f"{job.key[:-1]}x",
            spec=replace(job.spec, training=tuple({**dict(job.spec.training), "epochs": 10 * epochs}.items())),
        )
        for job in plan[:2]
    )
    for device in ("cpu", "cuda"):
        first = checkpoints.groups_of(plan + longer, tmp_path, None, device, workers=2)[0]
        assert set(first.keys) <= {job.key for job in longer}
        assert checkpoints.groups_of(plan + longer, tmp_path, None, device)[0].keys == [job.key for job in plan]
