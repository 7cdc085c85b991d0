"""Runs the parsers of a released SGLang or vLLM wheel on texts, without torch and without a GPU.

Usage: python originals.py {sglang|vllm} FOLDER < requests.jsonl > results.jsonl

FOLDER is an unpacked wheel (`pip download --no-deps sglang==0.5.23 && unzip -d FOLDER sglang-*.whl`).
The environment needs pydantic, orjson, partial-json-parser, regex and msgspec (what the
parsers themselves use; not json_repair and lxml, which the engine does not install); everything else that they import is replaced by stand-ins.

A request is {"kind": "tools" | "reasoning", "parser": name, "text": text, "tools": [...]}, a result
{"normal": text, "calls": [[name, arguments, index], ...]}, {"reasoning": text, "normal": text} or
{"raises": exception}. `{"list": true}` lists the names of both registries.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import signal
import sys
import types

ABSENT = ["lxml", "json_repair"]
dialect, folder = sys.argv[1], sys.argv[2]


class StandIn(type):
    """A class that has every attribute, can be called, subscribed and inherited from."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name, (), {})

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], type):
            return args[0]  # A decorator.
        return super().__call__() if cls.__mro__[0] is cls and not args and not kwargs else cls

    def __getitem__(cls, key):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __iter__(cls):
        return iter(())


class StandInModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name, (), {})


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: replaces every module that no other finder has found."""

    def find_spec(self, name, path=None, target=None):
        parent = sys.modules.get(name.rpartition(".")[0])
        is_own = name.split(".")[0] == dialect
        if name in ABSENT:
            return None  # Parsers have a fallback for this package, which is not installed by default.
        if parent is not None and not is_own and not isinstance(parent, StandInModule):
            return None  # A module that the real package does not have.
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandInModule(spec.name)

    def exec_module(self, module):
        pass


def bare_package(name):
    """A package of the wheel without running its `__init__`."""
    module = types.ModuleType(name)
    module.__path__ = [f"{folder}/{name.replace('.', '/')}"]
    sys.modules[name] = module


def stand_in(name, **attributes):
    module = StandInModule(name)
    for key, value in attributes.items():
        setattr(module, key, value)
    sys.modules[name] = module


sys.path.insert(0, folder)
sys.meta_path.append(StandInFinder())
logging.disable(logging.CRITICAL)


def run_sglang():
    from pydantic import BaseModel

    for name in ["sglang", "sglang.srt", "sglang.srt.entrypoints", "sglang.srt.entrypoints.openai",
                 "sglang.srt.function_call", "sglang.srt.parser"]:
        bare_package(name)

    class Function(BaseModel):
        description: str | None = None
        name: str | None = None
        parameters: object | None = None
        strict: bool = False

    class Tool(BaseModel):
        type: str = "function"
        function: Function

    stand_in("sglang.srt.entrypoints.openai.protocol", Tool=Tool, Function=Function)
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    def tools_of(request):
        return [Tool(**tool) for tool in request.get("tools") or []]

    def tokenizer_of(request):
        """A tokenizer with only the model's response template."""
        if "template" not in request:
            return None
        return types.SimpleNamespace(response_template=request["template"])

    def run_tools(request):
        parser = FunctionCallParser(tools_of(request), request["parser"], tokenizer_of(request))
        if "pieces" in request:
            results = [parser.parse_stream_chunk(piece) for piece in request["pieces"]]
            return join_stream([*results, parser.parse_stream_end()])
        normal, calls = parser.parse_non_stream(request["text"])
        return {"normal": normal, "calls": [[c.name, c.parameters, c.tool_index] for c in calls]}

    def join_stream(results):
        """Joins a stream as a client does: calls by their index."""
        texts, joined = [], {}
        for normal, calls in results:
            texts.append(normal or "")
            for call in calls:
                entry = joined.setdefault(call.tool_index, ["", "", call.tool_index])
                entry[0] += call.name or ""
                entry[1] += call.parameters or ""
        return {"normal": "".join(texts), "calls": list(joined.values())}

    def run_reasoning(request):
        parser = ReasoningParser(request["parser"], stream_reasoning="pieces" in request,
                                 tokenizer=tokenizer_of(request),
                                 **request.get("options", {}))
        if "pieces" in request:
            parts = [parser.parse_stream_chunk(piece) for piece in request["pieces"]]
            parts.append(parser.parse_stream_end())
            reasoning, normal = ("".join(part[i] or "" for part in parts) for i in (0, 1))
        else:
            reasoning, normal = parser.parse_non_stream(request["text"])
        return {"reasoning": reasoning or "", "normal": normal or ""}

    names = {
        "tools": sorted(FunctionCallParser.ToolCallParserEnum),
        "reasoning": sorted(ReasoningParser.DetectorMap),
    }
    return {"tools": run_tools, "reasoning": run_reasoning, "names": names}


def run_vllm():
    from types import SimpleNamespace
    from typing import Literal

    from pydantic import BaseModel, Field

    for name in ["vllm", "vllm.entrypoints", "vllm.entrypoints.openai", "vllm.entrypoints.generate",
                 "vllm.entrypoints.generate.base", "vllm.utils", "vllm.tokenizers",
                 "vllm.transformers_utils"]:
        bare_package(name)

    class Function(BaseModel):
        name: str
        description: str | None = None
        parameters: object | None = None

    class Tool(BaseModel):
        type: str = "function"
        function: Function

    class FunctionCall(BaseModel):
        id: str | None = None
        name: str
        arguments: str

    class ToolCall(BaseModel):
        id: str = ""
        type: Literal["function"] = "function"
        function: FunctionCall

    class Extracted(BaseModel):
        tools_called: bool
        tool_calls: list[ToolCall]
        content: str | None = None

    class DeltaFunctionCall(BaseModel):
        name: str | None = None
        arguments: str | None = None

    class DeltaToolCall(BaseModel):
        id: str | None = None
        type: str | None = None
        index: int = 0
        function: DeltaFunctionCall | None = None

    class DeltaMessage(BaseModel):
        role: str | None = None
        content: str | None = None
        reasoning: str | None = None
        tool_calls: list[DeltaToolCall] = Field(default_factory=list)

    class FunctionTool(BaseModel):
        name: str = ""

    class Request(SimpleNamespace):
        """A chat request with tools."""

    stand_in("vllm.entrypoints.generate.base.protocol", FunctionCall=FunctionCall, ToolCall=ToolCall,
             ExtractedToolCallInformation=Extracted, DeltaFunctionCall=DeltaFunctionCall,
             DeltaToolCall=DeltaToolCall, DeltaMessage=DeltaMessage)
    stand_in("vllm.entrypoints.openai.chat_completion.protocol", ChatCompletionRequest=Request,
             ChatCompletionToolsParam=Tool)
    stand_in("vllm.entrypoints.openai.responses.protocol")
    stand_in("vllm.sampling_params")
    stand_in("vllm.tokenizers")
    stand_in("vllm.exceptions", VLLMValidationError=ValueError)
    stand_in("openai.types.responses.function_tool", FunctionTool=FunctionTool)
    stand_in("openai.types.responses", FunctionTool=FunctionTool)
    stand_in("vllm.renderers.chat_utils", make_tool_call_id=lambda *a, **k: "call")
    stand_in("vllm.utils", random_uuid=lambda: "0")
    stand_in("vllm.utils.collection_utils",
             is_list_of=lambda value, kind, **k: isinstance(value, list)
             and all(isinstance(item, kind) for item in value))
    stand_in("vllm.utils.mistral", is_mistral_tokenizer=lambda tokenizer: False)
    special = {"tool_calls": "[TOOL_CALLS]", "args": "[ARGS]", "begin_think": "[THINK]",
               "end_think": "[/THINK]"}
    stand_in("mistral_common.tokens.tokenizers.base", SpecialTokens=SimpleNamespace(
        **{name: SimpleNamespace(value=token) for name, token in special.items()}))
    class Logger(logging.Logger):
        """A silent logger with vLLM's methods."""

        warning_once = info_once = debug_once = logging.Logger.debug

    stand_in("vllm.logger", init_logger=Logger)
    stand_in("vllm.envs", VLLM_ENFORCE_STRICT_TOOL_CALLING=False,
             VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS=1)

    class Vocabulary(dict):
        """A vocabulary that contains every token, with an id derived from its text."""

        lacks = ()

        def __contains__(self, token):
            return token not in self.lacks

        def __missing__(self, token):
            self[token] = 1_000_000 + len(self)
            return self[token]

        def get(self, token, default=None):
            return self[token]

    class Tokenizer:
        vocabulary = Vocabulary()
        vocab = vocabulary
        all_special_tokens = []
        all_special_ids = []
        bos_token_id = eos_token_id = 0
        bos_token = eos_token = "</s>"

        def get_vocab(self):
            return self.vocabulary

        def encode(self, text, **kwargs):
            return [ord(character) for character in text]

        def decode(self, ids, **kwargs):
            return "".join(chr(i) for i in ids if i < 0x110000)

        def convert_tokens_to_ids(self, token):
            return self.vocabulary[token]

        def convert_ids_to_tokens(self, ids, **kwargs):
            return [chr(i) for i in ids if i < 0x110000]

        def tokenize(self, text):
            return list(text)

    import vllm.tool_parsers as package
    from vllm.tool_parsers import ToolParserManager

    registered = package._TOOL_PARSERS_TO_REGISTER

    def run_template(tool_parser, tools, chat, request):
        """Serves as vLLM does without a reasoning parser."""
        chosen = type(tool_parser).unified_parser_cls()
        parser = type("ToolsOnly", (chosen,), {"reasoning_parser_cls": None})(Tokenizer(), tools)
        _, content, calls = parser.parse(request["text"], chat, enable_auto_tools=True)
        found = [[call.name, call.arguments, index] for index, call in enumerate(calls or [])]
        return {"normal": content or "", "calls": found}

    def run_cohere(request):
        """Returns what vllm/parser/cohere_command.py returns, from the package that it calls."""
        from cohere_melody import PyFilter, PyFilterOptions

        preset = request["parser"].replace("cohere_command", "cmd")
        found = PyFilter(getattr(PyFilterOptions(), preset)()).process_full_text(request["text"])
        if request["kind"] == "reasoning":
            return {"reasoning": found.reasoning or "", "normal": found.content or ""}
        calls = [[call.name, call.arguments, index] for index, call in enumerate(found.tool_calls)]
        return {"normal": found.content or "", "calls": calls}

    def run_openai(request):
        """Runs vLLM's own parser on ids. Literals of special tokens are read as these tokens."""
        from vllm.entrypoints.openai.parser.harmony_utils import get_encoding
        from vllm.parser.harmony import HarmonyParser

        encoding = get_encoding()
        parser = HarmonyParser.__new__(HarmonyParser)
        parser.model_tokenizer = encoding
        parser._parser = None
        parser._tool_parser = parser._reasoning_parser = object()
        parser._num_processed_messages = 0
        parser._num_counted_tokens = parser._num_reasoning_tokens = 0
        parser._current_message_tokens = []
        ids = encoding.encode(request["text"], allowed_special="all")
        reasoning, content, calls = parser.parse(request["text"], None, True, ids)
        if request["kind"] == "reasoning":
            return {"reasoning": reasoning or "", "normal": content or ""}
        found = [[call.name, call.arguments, index] for index, call in enumerate(calls or [])]
        return {"normal": content or "", "calls": found}

    def run_tools(request):
        if request["parser"].startswith("cohere_command"):
            return run_cohere(request)
        if request["parser"] == "openai":
            return run_openai(request)
        file_name, class_name = registered[request["parser"]]
        module = importlib.import_module(f"vllm.tool_parsers.{file_name}")
        tools = [Tool(**tool) for tool in request.get("tools") or []]
        Vocabulary.lacks = request.get("lacks", ())
        Tokenizer.response_template = request.get("template")
        parser = getattr(module, class_name)(Tokenizer(), tools)
        chat = Request(tools=tools, tool_choice="auto", skip_special_tokens=True,
                       include_reasoning=True, structured_outputs=None, response_format=None,
                       chat_template_kwargs=None, parallel_tool_calls=True, messages=[])
        if "template" in request:
            return run_template(parser, tools, chat, request)
        found = parser.extract_tool_calls(request["text"], chat)
        calls = [
            [c.function.name, c.function.arguments, index]
            for index, c in enumerate(found.tool_calls)
        ]
        return {"normal": found.content or "", "calls": calls}

    # Only the reasoning parsers that are compared.
    names = {"tools": sorted(registered), "reasoning": ["cohere_command3", "cohere_command4", "openai_gptoss"]}

    def run_reasoning(request):
        is_cohere = request["parser"].startswith("cohere_command")
        return run_cohere(request) if is_cohere else run_openai(request)

    return {"tools": run_tools, "reasoning": run_reasoning, "names": names}


runners = {"sglang": run_sglang, "vllm": run_vllm}[dialect]()



def on_alarm(signum, frame):
    raise TimeoutError


signal.signal(signal.SIGALRM, on_alarm)

for line in sys.stdin:
    request = json.loads(line)
    if request.get("list"):
        result = runners["names"]
    else:
        signal.alarm(5)
        try:
            result = runners[request["kind"]](request)
        except TimeoutError:
            result = {"raises": "Timeout"}
        except Exception as error:  # Any exception of the original is its result.
            result = {"raises": type(error).__name__}
            if request.get("explain"):
                import traceback
                result["trace"] = traceback.format_exc()
        signal.alarm(0)
    sys.stdout.write(json.dumps(result) + "\n")
