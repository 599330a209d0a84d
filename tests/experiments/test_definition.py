"""An experiment file: the runs that it means, and all of its mistakes at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.definition.run_settings import setting_names
from embinit.experiments.experiment import Experiment
from embinit.experiments.inputs.outline import read_experiment
from embinit.experiments.runs.store import blank_keys
from embinit.experiments.spec import LATER, Task
from embinit.models.architecture import Architecture
from embinit.recipes.recipe import recipe, steps_text
from embinit.reports.analysis import published
from embinit.reports.results_reader import read_compact
from embinit.training.options import Training
from tests.experiments.made import BLOCK, HEAD, places, resolved, written

ROOT = Path(__file__).parents[2]
EXPERIMENTS = {path.stem: path for path in (ROOT / "experiments").rglob("*.toml")}
FILES = sorted(path for path in (ROOT / "experiments").rglob("*.toml") if path.name != "sources.toml")


def read(folder: Path, blocks: str = BLOCK, head: str = HEAD) -> Experiment:
    return read_experiment(written(folder, blocks, head))


def test_a_grid_is_every_combination_in_the_files_order(tmp_path: Path) -> None:
    (block,) = read(tmp_path, BLOCK + 'grid.model.norm = ["post", "pre"]\n').blocks
    assert [(dict(run.axes), run.spec.seed) for run in block.runs] == [
        ({"recipe": recipe, "model.norm": norm}, seed)
        for recipe in ("xavier", "pretrained")
        for seed in (1, 2)
        for norm in ("post", "pre")
    ]
    assert {dict(run.spec.model)["norm"] for run in block.runs} == {"post", "pre"}


def test_every_default_is_filled_in_and_the_rate_is_the_tasks(tmp_path: Path) -> None:
    head = HEAD.replace("training.rate = 5e-3\n", "")
    blocks = '[[block]]\nname = "a"\n[[block]]\nname = "b"\ntask = "sorting"\n'
    translation, classification = (block.runs[0].spec for block in read(tmp_path, blocks, head).blocks)
    assert dict(translation.training)["rate"] == 2e-4
    assert dict(classification.training)["rate"] == 1e-4
    assert dict(translation.training)["betas"] == (0.9, 0.98)
    assert dict(translation.model)["dropout"] == 0.1
    assert [name for name, _ in translation.sides] == ["source", "target"]
    assert [name for name, _ in classification.sides] == ["text"]
    assert read(tmp_path, blocks, head).blocks[1].score == "accuracy"


def test_settings_that_came_later_do_not_rename_runs(tmp_path: Path) -> None:
    """The first keys were computed before these settings existed."""
    lines = (
        "",
        "model.position_dims = 0\nmodel.position_gain = 1\ntraining.found_rate = 1\n",
        "model.position_dims = 4\n",
        "model.position_gain = 2\n",
    )
    plain, same, *others = ([run.spec.key for run in read(tmp_path, BLOCK + line).blocks[0].runs] for line in lines)
    assert plain == ["897a03c434ee3466", "83bb70100eb90118", "a9d96fc409b88703", "652afee65cc24903"]
    assert same == plain
    assert len({key for keys in (plain, *others) for key in keys}) == 12


def test_found_rate_names_new_runs_of_rows_that_have_a_source_and_of_no_others(tmp_path: Path) -> None:
    plain, slow = (
        [run.spec for run in read(tmp_path, BLOCK + line).blocks[0].runs]
        for line in ("", "training.found_rate = 0.1\n")
    )
    same = [before.key == after.key for before, after in zip(plain, slow, strict=True)]
    assert same == [spec.sides[0][1].recipe == "xavier" for spec in plain] == [True, True, False, False]


def test_rows_of_the_output_layer_are_a_matrix_of_their_own(tmp_path: Path) -> None:
    plain, same, own = (
        [run.spec for run in read(tmp_path, BLOCK + line).blocks[0].runs]
        for line in ("", 'output.source = "small"\n', 'output.source = "small"\noutput.recipe = "pretrained_xavier"\n')
    )
    assert {tuple(dict(spec.sides)) for spec in plain} == {("source", "target")}
    assert {tuple(dict(spec.sides)) for spec in (*same, *own)} == {("source", "target", "output")}
    assert [dict(spec.sides)["output"].recipe for spec in same] == [spec.sides[0][1].recipe for spec in same]
    assert {dict(spec.sides)["output"].recipe for spec in own} == {"pretrained_xavier"}
    assert len({spec.key for spec in (*plain, *same, *own)}) == 12


def test_found_rate_does_not_name_new_runs_of_output_rows_alone(tmp_path: Path) -> None:
    lines = 'recipe = "xavier"\noutput.source = "small"\noutput.recipe = "pretrained"\nseed = 1\n'
    runs = read(tmp_path, f'[[block]]\nname = "x"\n{lines}grid.training.found_rate = [1.0, 0.1]\n').blocks[0].runs
    assert len({run.spec.key for run in runs}) == 1


def test_output_rows_in_the_defaults_are_for_blocks_that_can_have_them(tmp_path: Path) -> None:
    head = HEAD + 'output.source = "small"\n'
    blocks = "".join(
        f'[[block]]\nname = "{name}"\nseed = 1\n{lines}'
        for name, lines in (("untied", ""), ("tied", "model.tied = true\n"), ("labels", 'task = "sorting"\n'))
    )
    sides = [tuple(dict(block.runs[0].spec.sides)) for block in read(tmp_path, blocks, head).blocks]
    assert sides == [("source", "target", "output"), ("source", "target"), ("text",)]
    with pytest.raises(EmbinitError, match=r"output\.source does nothing: no task has this side"):
        read(tmp_path, BLOCK, 'kind = "distribution"\n' + head)


def test_a_measurement_has_no_output_layer(tmp_path: Path) -> None:
    head = 'kind = "distribution"\n' + HEAD
    with pytest.raises(EmbinitError, match="the task's matrices are encoder and decoder"):
        read(tmp_path, BLOCK + 'output.recipe = "xavier"\n', head)


def test_later_settings_are_settings_at_their_defaults() -> None:
    names = setting_names()
    for name, value in LATER.items():
        part, _, field = name.partition(".")
        assert name in names or part == "task"
        assert getattr({"model": Architecture, "training": Training, "task": Task}[part], field) == value


def test_dimensions_of_positions_are_checked_where_the_dimension_is_not_known_yet(tmp_path: Path) -> None:
    block = '[[block]]\nname = "x"\nsource = "other"\nmodel.heads = 1\nmodel.position_dims = '
    (run,) = read(tmp_path, f"{block}128\n").blocks[0].runs
    assert dict(run.spec.model)["position_dims"] == 128
    with pytest.raises(EmbinitError, match="position_dims is 7; 0 or an even number"):
        read(tmp_path, f"{block}7\n")


RESULTS = sorted((ROOT / "results").glob("*.results.json"))


def test_committed_results_are_there() -> None:
    assert len(RESULTS) > 20


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name.partition(".")[0])
def test_every_committed_run_has_the_key_that_its_file_plans(path: Path) -> None:
    content = read_compact(path)
    planned = {
        run.spec.blank(dim=False).key
        for block in read_experiment(EXPERIMENTS[content.experiment.name]).blocks
        for run in block.runs
    }
    committed = {result.spec.blank(dim=False).key for result in content.results.values()}
    assert committed <= planned
    assert committed or content.measured


def test_a_sides_own_setting_comes_before_the_plain_one(tmp_path: Path) -> None:
    blocks = BLOCK + 'encoder.recipe = "xavier"\nencoder.fill = "zeros"\n'
    (block,) = read(tmp_path, blocks).blocks
    sides = dict(block.runs[2].spec.sides)
    assert (sides["source"].recipe, sides["target"].recipe) == ("xavier", "pretrained")
    assert (sides["source"].fill, sides["target"].fill) == ("zeros", "target")


def test_random_rows_are_the_same_beside_any_source(tmp_path: Path) -> None:
    head = HEAD.replace('path = "other.txt"', 'path = "other.txt"\ndim = 16')
    blocks = BLOCK + '[[block]]\nname = "more"\nsource = "other"\ngrid.recipe = ["xavier", "pretrained"]\n'
    first, second = read(tmp_path, blocks, head).blocks
    keys = {run.spec.key for run in first.runs}
    assert second.runs[0].spec.key in keys
    assert second.runs[1].spec.key not in keys


def test_two_spellings_of_a_recipe_are_one_run(tmp_path: Path) -> None:
    blocks = BLOCK.replace('"xavier", "pretrained"', '"pretrained_xavier", "pretrained|center | scale  to=xavier"')
    (block,) = read(tmp_path, blocks).blocks
    assert len({run.spec.key for run in block.runs}) == 2
    assert dict(block.runs[2].spec.sides)["source"].recipe == "pretrained_xavier"
    assert dict(block.runs[2].spec.sides)["source"].steps == "pretrained | center | scale to=xavier"


def test_places_of_a_recipe_are_filled_from_the_grid(tmp_path: Path) -> None:
    blocks = """
[recipes.random]
steps = "xavier | scale ratio={ratio}"
fill = "mean"
[[block]]
name = "sweep"
sweep = "ratio"
grid.recipe = ["random"]
grid.ratio = [0.1, 1.0]
"""
    (block,) = read(tmp_path, blocks).blocks
    assert [dict(run.axes) for run in block.runs] == [
        {"recipe": "random", "ratio": "0.1"},
        {"recipe": "random", "ratio": "1.0"},
    ]
    assert [dict(run.spec.sides)["target"].recipe for run in block.runs] == [
        "xavier | scale ratio=0.1",
        "xavier | scale ratio=1.0",
    ]
    assert {side.fill for run in block.runs for _, side in run.spec.sides} == {"mean"}
    assert block.sweep == "ratio"


def test_a_files_own_tables_replace_included_ones(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text('[sources.small]\npath = "theirs.txt"\n[sources.more]\npath = "more.txt"\n')
    draft = read_draft(written(tmp_path, BLOCK, f'include = "shared.toml"\n{HEAD}'))
    assert draft.sources["small"].path == "small.txt"
    assert draft.sources["more"].path == "more.txt"
    (tmp_path / "shared.toml").write_text("[defaults]\nseed = 1\n")
    with pytest.raises(EmbinitError, match="'defaults' cannot be shared"):
        read_draft(tmp_path / "made.toml")


WRONG = {
    'titel = "x"': "made.toml: unknown key 'titel'; did you mean 'title'?",
    'kind = "trainin"': "made.toml, kind: 'trainin' is unknown; did you mean 'training'?",
    'baseline = "xaver"': "made.toml, baseline: unknown recipe 'xaver'; did you mean 'xavier'?",
}


@pytest.mark.parametrize("line", WRONG)
def test_mistakes_at_the_top_are_reported(line: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, head=f"{line}\n{HEAD}")
    assert str(raised.value) == WRONG[line]


IN_BLOCK = {
    "model.head = 4": "block 1 (x).model: unknown key 'head'; did you mean 'heads'?",
    "model = 4": "block 1 (x).model: 4, but a table is expected: model.NAME = VALUE",
    "modell.heads = 4": "block 1 (x): unknown key 'modell'; did you mean 'model'?",
    "training.epochs = 2.5": "block 1 (x).training.epochs: 2.5, but a whole number is expected",
    "training.rate = true": "block 1 (x).training.rate: true, but a number is expected",
    "training.betas = [0.9]": "block 1 (x).training.betas: [0.9], but a list of 2 is expected",
    'model.norm = "prae"': "block 1 (x).model.norm: 'prae' is unknown; did you mean 'pre'?",
    "seed = [1, 2]": "block 1 (x).seed: a list; lists go into the block's grid",
    'recipe = ["xavier"]': "block 1 (x).recipe: a list; lists go into the block's grid",
    "model.heads = 3": "block 1 (x): 3 heads do not divide 16 dimensions",
    "model.dim = 24": "block 1 (x): the dimensions differ: small 16, model.dim 24",
    "model.dropout = 1.5": "block 1 (x): dropout 1.5; from 0 to below 1",
    "training.batch = 0": "block 1 (x): batch is 0; at least 1 is needed",
    'recipe = "pretraind"': "block 1 (x): unknown recipe 'pretraind'; did you mean 'pretrained'?",
    'recipe = "pretrained | scle std=1"': "block 1 (x): unknown step 'scle'; did you mean 'scale'?",
    'recipe = "xavier | scale ratio={r}"': "the recipe 'xavier | scale ratio={r}' contains {r}; add grid.r = [...]",
    'source = "smal"': "block 1 (x), source: unknown source 'smal'; did you mean 'small'?",
    'task = "coping"': "block 1 (x), task: unknown task 'coping'; did you mean 'copying'?",
    'text.recipe = "xavier"': "block 1 (x): text.recipe does nothing: the task's matrices are encoder, decoder and output",
    'output.recipe = "xavier"\nmodel.tied = true': (
        "block 1 (x): output.recipe does nothing: the model's output layer is tied; set model.tied = false"
    ),
    'task = "sorting"\noutput.recipe = "xavier"': (
        "block 1 (x): output.recipe does nothing: the task's matrices are text"
    ),
    'source = ""\nmodel.dim = 16\noutput.recipe = "pretrained"': "needs a source for the output; add output.source",
    'score = "accuracy"': "block 1 (x).score: 'accuracy' is no score of a translation",
    "grid.seed = 3": "block 1 (x), grid.seed: 3, but a list is expected",
    "grid.seed = []": "block 1 (x), grid.seed: an empty list; give at least one value",
    "training.lr = 1e-3": "block 1 (x).training: unknown key 'lr'; did you mean 'rate'?",
    "model.d_model = 16": "block 1 (x).model: unknown key 'd_model'; did you mean 'dim'?",
    'baseline = "xavier"': "block 1 (x): unknown key 'baseline'; it belongs at the top of the file",
    'tasks.x = "y"': "block 1 (x): unknown key 'tasks'; write [tasks.NAME]",
    "grid.seed = [1, 1]": "block 1 (x), grid.seed: a value occurs twice in the list",
    'grid.recipe = ["xavier", 3]': "block 1 (x), grid.recipe: 3, but a text is expected",
    "grid.model.haeds = [2]": "block 1 (x), grid.model: unknown key 'haeds'; did you mean 'heads'?",
    "grid.ratio = [2]": "block 1 (x), grid: unknown key 'ratio'",
    'sweep = "ratio"': "block 1 (x).sweep: the grid has no axis 'ratio'",
    "seed = -1": "block 1 (x).seed: -1; at least 0 is needed",
    'task = "sorting"\nsource = ""\nrecipe = "pretrained"\nmodel.dim = 16': "needs a source for the text; add text.source",
    'source = ""': "needs model.dim, because no source states the dimension",
    'source = ""\nmodel.dim = 24\nmodel.positions = "rotary"\nmodel.heads = 8': "rotary positions need an even head",
    'recipe = "xavier"\ngrid.recipe = ["xavier"]': "block 1 (x): recipe is in the block and in its grid",
    'recipe = "xavier"\nencoder.recipe = "xavier"\ndecoder.recipe = "xavier"': "recipe does nothing beside encoder.recipe",
    'paper = ["tabel 1", "multi30k", "glove"]': "block 1 (x).paper: the paper has no table 'tabel 1'; did you mean",
    'paper = ["table 1", "multi40k", "glove"]': "the paper has no task 'multi40k'; did you mean 'multi30k'?",
    'paper = ["table 1"]': "block 1 (x).paper: ['table 1'], but three names are expected",
    'paper = "table 1"': "block 1 (x).paper: 'table 1', but a list is expected",
}


@pytest.mark.parametrize("lines", IN_BLOCK)
def test_mistakes_in_a_block_are_reported(lines: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, f'[[block]]\nname = "x"\n{lines}\n')
    assert str(raised.value).startswith("made.toml, block 1 (x)")
    assert IN_BLOCK[lines] in str(raised.value)
    assert "\n" not in str(raised.value)


IN_TABLES = {
    '[sources.a]\npat = "x"': "sources.a: unknown key 'pat'; did you mean 'path'?",
    "[sources.a]\npath = 3": "sources.a.path: 3, but a text is expected",
    '[sources.a]\nabout = "x"': "sources.a: needs either path or glove = {...}",
    '[sources.a]\nglove = {texts = ["captions:de"], dm = 3}': "sources.a.glove: unknown key 'dm'; did you mean 'dim'?",
    '[sources.a]\nglove = {texts = ["multi40k:de"]}': "'multi40k:de' is no DATA SET:LANGUAGE; did you mean 'multi30k'?",
    "[sources.a]\nglove = {dim = 3}": "sources.a.glove: needs texts",
    '[sources.a]\npath = "x"\nname = "b"': "sources.a: remove the key 'name'; the name of the table counts: [sources.a]",
    '[tasks.a]\nname = "multi40k"': "tasks.a.name: unknown data set 'multi40k'; did you mean 'multi30k'?",
    '[tasks.a]\nname = "multi30k"\nsize = 3': "tasks.a.size: multi30k is not generated; use rows = 3 to keep 3",
    '[tasks.a]\nname = "multi30k"\nrows = 0': "tasks.a.rows: 0; at least 1 is needed",
    '[tasks.a]\nname = "tatoeba"\nalso = ["iwslt:test"]': "tasks.a.also: 'iwslt:test' is no DATA SET:SPLIT",
    '[recipes.a]\nsteps = "xavier"\nfil = "mean"': "recipes.a: unknown key 'fil'; did you mean 'fill'?",
    '[recipes.xavier]\nsteps = "normal"': "recipes.xavier: 'xavier' is a recipe's name already",
    '[recipes.same]\nsteps = "normal"': "recipes.same: 'same' means each row's own recipe in `baseline`; choose",
}


@pytest.mark.parametrize("lines", IN_TABLES)
def test_mistakes_in_tables_are_reported(lines: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, f"{lines}\n{BLOCK}")
    assert IN_TABLES[lines] in str(raised.value)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    lines = ["model.head = 4", 'grid.recipe = ["xavier", "pretraind"]', "training.epochs = true", 'source = "smal"']
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, '[[block]]\nname = "x"\n' + "\n".join(lines))
    messages = str(raised.value).split("\n")
    assert messages[0] == "4 mistakes:"
    assert len(messages) == 5


def test_a_misspelt_recipe_is_listed_beside_any_other_mistake(tmp_path: Path) -> None:
    others = ['task = "coping"', "model.head = 4", "training.epochs = true", 'fill = "men"', 'grid.seed = ["one"]']
    for other in others:
        for line in ('recipe = "pretraind"', 'decoder.recipe = "pretraind"', 'grid.recipe = ["pretraind"]'):
            with pytest.raises(EmbinitError) as raised:
                read(tmp_path, f'[[block]]\nname = "x"\n{line}\n{other}\n')
            messages = str(raised.value).split("\n")
            assert messages[0] == "2 mistakes:"
            assert sum("'pretraind'; did you mean 'pretrained'?" in message for message in messages) == 1
    with pytest.raises(EmbinitError, match=r"recipes.unused: unknown step 'scle'; did you mean 'scale'\?"):
        read(tmp_path, f'[recipes.unused]\nsteps = "pretrained | scle"\n{BLOCK}')


def test_a_wrong_value_causes_no_further_messages(tmp_path: Path) -> None:
    lines = (
        '[[block]]\nsource = ""\nmodel.dim = "x"\n',
        "[[block]]\ntask = 3\n",
        '[[block]]\nrecipe = "pretrained"\nsource = 3\n',
        '[recipes.a]\nsteps = "xavier | scale ratio={r}"\n[[block]]\nsweep = "r"\nrecipe = "a"\ngrid.r = 3\n',
        "[sources.a]\npath = 3\n[[block]]\nsource = 'a'\n",
        "[tasks.a]\nname = 3\n[[block]]\ntask = 'a'\n",
        "block = 3\n",
        "sources = 3\n[[block]]\ntask = 'captions'\nsource = 'small'\nmodel.dim = 16\n",
        'defaults = 3\n[[block]]\nname = "x"\n',
    )
    for text in lines:
        head = "" if text.startswith(("block", "defaults", "sources =")) else HEAD
        with pytest.raises(EmbinitError) as raised:
            read(tmp_path, text, head)
        assert "\n" not in str(raised.value)


def test_two_mistakes_in_one_value_hide_no_others(tmp_path: Path) -> None:
    lines = ['name = "x"', 'training.betas = ["one"]', "training.epochs = true", 'recipe = "pretraind"']
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, "\n".join([BLOCK, "[[block]]", *lines]))
    messages = str(raised.value).splitlines()[1:]
    assert len([message for message in messages if "training.betas" in message]) == 2
    assert len([message for message in messages if "training.epochs" in message]) == 1
    assert len([message for message in messages if "block 2 (x)" in message and "'pretrained'" in message]) == 1
    assert len(messages) == 4


def test_a_recipe_has_the_same_forms_as_on_the_command_line(tmp_path: Path) -> None:
    """A name, steps, and a TOML table whose steps are a text or a list, in this file or in another one."""
    steps = ["pretrained", "center", {"scale": {"ratio": 0.4}}]
    listed = 'steps = ["pretrained", "center", {scale = {ratio = 0.4}}]'
    (tmp_path / "mine.toml").write_text(f'[half]\n{listed}\nfill = "mean"\n')
    forms = {
        "steps": 'recipe = "pretrained | center | scale ratio=0.4"\nfill = "mean"',
        "list": 'recipe = "half"',
        "file": 'recipe = "mine.toml::half"',
        "grid": 'grid.recipe = ["mine.toml::half"]',
    }
    own = f'[recipes.half]\n{listed}\nfill = "mean"\n'
    keys = {
        name: [run.spec.key for run in read(tmp_path, f"{own}[[block]]\n{line}\n").blocks[0].runs]
        for name, line in forms.items()
    }
    assert list(keys.values()) == [keys["steps"]] * len(forms)
    given = recipe(f"{tmp_path / 'mine.toml'}::half")
    assert (str(given), given.fill) == (steps_text(steps), "mean")
    with pytest.raises(EmbinitError, match=r"recipes.half.steps: a step is a name or"):
        read(tmp_path, "[recipes.half]\nsteps = [3]\n" + BLOCK)
    with pytest.raises(EmbinitError, match=r"mine.toml has no recipe 'haf'; did you mean 'half'"):
        read(tmp_path, BLOCK + 'decoder.recipe = "mine.toml::haf"\n')


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="is not TOML"):
        read(tmp_path, "[[block")
    with pytest.raises(EmbinitError, match="cannot read"):
        read_experiment(tmp_path / "none.toml")
    with pytest.raises(EmbinitError, match="needs blocks"):
        read(tmp_path, "")


def test_a_task_without_test_is_judged_by_its_validation(tmp_path: Path) -> None:
    assert read(tmp_path, BLOCK + 'task = "sst2"\n').blocks[0].split == "valid"
    assert read(tmp_path, BLOCK + 'task = "tatoeba"\n').blocks[0].split == "test"
    assert read(tmp_path, BLOCK).blocks[0].split == "test"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_projects_own_files_are_sound(path: Path) -> None:
    experiment = read_experiment(path)
    assert experiment.blocks
    assert experiment.title
    assert experiment.question
    text = path.read_text("utf-8")
    assert text.startswith("# ")
    if (ROOT / "results" / f"{path.stem}.results.json").is_file():  # others have not been run
        assert experiment.cost
        assert "# cost: " in text
    for block in experiment.blocks:
        assert block.runs


def test_the_projects_files_are_found() -> None:
    names = {path.stem for path in FILES}
    assert {"demo", "figure1", "scale", *(f"table{i}" for i in (1, 2, 3, 4, 6, 7, 8))} <= names


def test_table_one_has_the_papers_twelve_experiments_in_table_fives_order() -> None:
    blocks = [block for block in read_experiment(ROOT / "experiments/paper/table1.toml").blocks if block.paper]
    order = list(dict.fromkeys(block.paper[1:] for block in blocks))
    tasks, embeddings = ("multi30k", "mnli", "sst2", "iwslt2017"), ("glove", "bert", "t5")
    assert order == [(task, embedding) for task in tasks for embedding in embeddings]
    official = {block.paper[1:]: block for block in reversed(blocks)}
    settings = {
        pair: (
            dict(run.training)["epochs"],
            dict(run.training)["batch"],
            dict(run.model)["heads"],
            dict(run.model)["dim"],
        )
        for pair, block in official.items()
        for run in [block.runs[0].spec]
    }
    assert settings[("multi30k", "glove")] == (20, 64, 10, 300)
    assert settings[("multi30k", "bert")] == (20, 128, 8, 768)
    assert settings[("multi30k", "t5")] == (20, 96, 8, 768)
    assert settings[("mnli", "glove")] == (9, 128, 10, 300)
    assert settings[("mnli", "bert")] == (10, 128, 8, 768)
    assert settings[("mnli", "t5")] == (10, 128, 8, 512)
    assert settings[("sst2", "glove")] == (5, 128, 10, 300)
    assert settings[("iwslt2017", "glove")] == (20, 128, 10, 300)
    assert settings[("iwslt2017", "t5")] == (20, 112, 8, 768)


def test_figure_one_needs_no_run_that_table_one_does_not_have() -> None:
    def keys(name: str) -> set[str]:
        blocks = read_experiment(ROOT / f"experiments/paper/{name}.toml").blocks
        return {run.spec.key for block in blocks for run in block.runs}

    assert keys("figure1") < keys("table1")
    assert len(keys("figure1")) > 100


def heads_of(folder: Path, lines: str) -> list[int]:
    head = HEAD.replace("model.heads = 2\n", "")
    (block,) = read(folder, f'[[block]]\nname = "x"\nsource = ""\n{lines}\n', head).blocks
    return [dict(run.spec.model)["heads"] for run in block.runs]


def test_heads_follow_the_dimension_if_a_file_states_none(tmp_path: Path) -> None:
    assert heads_of(tmp_path, "grid.model.dim = [64, 300, 40, 50, 63, 97]") == [8, 10, 8, 10, 7, 1]
    assert heads_of(tmp_path, "grid.model.dim = [64, 300]\nmodel.heads = 4") == [4, 4]
    with pytest.raises(EmbinitError, match=r"set heads to one of 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 25, 30$"):
        heads_of(tmp_path, "model.dim = 300\nmodel.heads = 8")
    with pytest.raises(EmbinitError, match=r"set heads to one of 1, 2, 3, 4, 6, 12$"):
        heads_of(tmp_path, 'model.dim = 24\nmodel.positions = "rotary"')


def test_runs_with_default_heads_are_found_before_their_dimension_is_known(tmp_path: Path) -> None:
    path = written(tmp_path, BLOCK + 'source = "other"\n', HEAD.replace("model.heads = 2\n", ""))
    outlined = [run.spec for run in read_experiment(path).blocks[0].runs]
    complete = [run.spec for run in resolved(path, places(tmp_path)).experiments[0].blocks[0].runs]
    assert {dict(spec.model)["heads"] for spec in complete} == {6}  # of 12 dimensions
    assert "dim" not in dict(outlined[0].model)
    assert all(early.key in blank_keys(late) for early, late in zip(outlined, complete, strict=True))


def test_every_block_of_the_paper_can_be_named(tmp_path: Path) -> None:
    named = [
        (
            table.replace("1", " 1") if table == "figure1" else table.replace("table", "Table "),
            row["task"],
            row["embedding"],
        )
        for table, rows in published.tables().items()
        for row in (rows if isinstance(rows, list) else [])
        if {"task", "embedding"} <= set(row) and table != "table5"
    ]
    assert len(named) > 30
    for words in named:
        (block,) = read(tmp_path, f"{BLOCK}paper = {list(words)!r}\n").blocks
        assert published.called(block.paper)[1:] == words[1:]


def test_numbers_of_glove_stay_as_written_because_they_name_its_vectors(tmp_path: Path) -> None:
    source = '[sources.a]\nglove = {texts = ["captions:de"], x_max = 10, alpha = 0.5}\n'
    glove = read_draft(written(tmp_path, source + BLOCK)).sources["a"].glove
    assert glove is not None
    assert json.dumps([glove.x_max, glove.alpha, glove.lr]) == "[10, 0.5, 0.05]"
    with pytest.raises(EmbinitError, match=r"glove.x_max: '10', but a number is expected"):
        read(tmp_path, source.replace("10", "'10'") + BLOCK)
