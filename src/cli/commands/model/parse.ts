import { Option, type Command } from "commander";
import { toolsFromOpenAi } from "../../../message.ts";
import { listReasoningParsers } from "../../../../packages/tool-parsers/src/reasoning/registry.ts";
import {
  findToolCallParser,
  listToolCallParsers,
} from "../../../../packages/tool-parsers/src/registry.ts";
import type {
  CompatCall,
  Dialect,
  ParseOptions,
  ParseResult,
  ToolCallStream,
} from "../../../../packages/tool-parsers/src/tool-call-parser.ts";
import type { PlainJson, PyDict, PyValue } from "../../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../../../packages/python-values/src/value.ts";
import { assertInvariant, UsageError } from "../../../errors.ts";
import {
  answerJsonLines,
  dictMember,
  LineError,
  listMember,
  textMember,
  toLinesInput,
} from "../../json-lines.ts";
import { readResponseTemplate, responseTemplateFlag } from "../../response-template-file.ts";
import { writeOut } from "../../write-out.ts";

interface ParseFlags {
  readonly parser?: string;
  readonly dialect: Dialect;
  readonly engineVersion?: string;
  readonly forwardUnknownTools?: boolean;
  readonly in?: string;
  readonly list?: boolean;
  readonly responseTemplate?: string;
}

/** `turnwright parse`: parses sampled text to tool calls. */
export function defineParse(command: Command): void {
  command
    .description(
      'Reads lines {"id","text","tools","finishReason"?} and answers each with what the engine would ' +
        'report (normalText, calls) and every attempt that the engine hides. With "chunks":["…"] in ' +
        "the place of the text, they go through the streaming parser one by one.",
    )
    .option("--parser <name>", "tool-call parser, such as qwen25")
    .addOption(
      new Option("--dialect <dialect>", "engine whose parser to follow")
        .choices(["sglang", "vllm"])
        .default("sglang"),
    )
    .option(
      "--engine-version <release>",
      "the engine release (default: 2026-08, for vllm 0.24; newest: 0.5.23 and 0.33); before 2026-05 exact for qwen25 only",
    )
    .option(
      "--forward-unknown-tools",
      "the engine runs with SGLANG_FORWARD_UNKNOWN_TOOLS=1 (default: as here in the environment)",
    )
    .option(...responseTemplateFlag)
    .option("--in <file>", "read from a file instead of standard input")
    .option("--list", "list the parsers")
    .action(async (flags: ParseFlags) => {
      if (flags.list === true) {
        await listParsers();
        return;
      }
      await parseLines(flags);
    });
}

async function listParsers(): Promise<void> {
  for (const { name, aliases, dialects } of listToolCallParsers()) {
    await writeOut(`${JSON.stringify({ parser: name, aliases, dialects, reasoning: false })}\n`);
  }
  for (const { name, aliases, dialects } of listReasoningParsers()) {
    await writeOut(`${JSON.stringify({ parser: name, aliases, dialects, reasoning: true })}\n`);
  }
}

async function parseLines(flags: ParseFlags): Promise<void> {
  if (flags.parser === undefined) {
    throw new UsageError("Missing --parser: name a parser (see `parse --list`)");
  }
  const parser = findToolCallParser(flags.parser);
  const template = await readResponseTemplate(flags.responseTemplate);
  // Parses an empty text first, so that a problem with the flags is reported once and not for each
  // line.
  parser.parse("", { ...optionsOf(new Map(), flags), ...template });
  process.exitCode = await answerJsonLines(toLinesInput(flags.in), writeOut, (line) => {
    const options = { ...optionsOf(line, flags), ...template };
    return line.has("chunks")
      ? streamChunks(parser.createStream(options), chunksOf(line))
      : toAnswer(parser.parse(textMember(line, "text"), options));
  });
}

/**
 * Returns the parse options of a line and the flags. A line may have `env` and `init`, as recorded vectors do.
 */
function optionsOf(line: PyDict, flags: ParseFlags): ParseOptions {
  const finish = line.get("finishReason");
  const vocabulary = dictMember(line, "init").get("tokenizer_vocab");
  const setting = dictMember(line, "env").get(forwardVariable) ?? process.env[forwardVariable];
  return {
    tools: toolsFromOpenAi(listMember(line, "tools").map(asChatTool), "tools"),
    dialect: flags.dialect,
    forwardUnknownTools: flags.forwardUnknownTools ?? isTrue(setting),
    vocabulary: isPyList(vocabulary) ? vocabulary.map(String) : [],
    ...(flags.engineVersion !== undefined && { engineVersion: flags.engineVersion }),
    ...((finish === "length" || finish === "stop") && { finishReason: finish }),
  };
}

const forwardVariable = "SGLANG_FORWARD_UNKNOWN_TOOLS";

function isTrue(setting: PyValue | undefined): boolean {
  if (typeof setting !== "string") return setting === true;
  return ["1", "true", "yes", "y"].includes(setting.toLowerCase());
}

/** Converts a tool of the Responses API, which has the function's members next to `type`. */
function asChatTool(tool: PyValue): PyValue {
  const isFlat = isPyDict(tool) && !tool.has("function") && tool.has("name");
  return isFlat ? new Map<string, PyValue>([["function", tool]]) : tool;
}

/** Returns the chunks of a line. */
export function chunksOf(line: PyDict): string[] {
  return listMember(line, "chunks").map((chunk) => {
    if (typeof chunk === "string") return chunk;
    throw new LineError("bad-line", '"chunks" must be texts');
  });
}

/** Combines the events of a stream. */
function streamChunks(stream: ToolCallStream, chunks: readonly string[]): PlainJson {
  const events = [...chunks.flatMap((chunk) => stream.push(chunk)), ...stream.end()];
  const texts: string[] = [];
  const calls: CompatCall[] = [];
  let result: ParseResult | undefined;
  for (const event of events) {
    if (event.type === "text") texts.push(event.text);
    else if (event.type === "tool-call") calls.push(event.call);
    else result = event.result;
  }
  assertInvariant(result !== undefined, "A stream's last event holds its result");
  const released = texts.join("");
  // A stream may have released text that the complete result no longer has, for example if the
  // engine raises later.
  const stands = released === result.compat.normalText;
  const answer = toAnswer({ ...result, compat: { ...result.compat, calls } });
  return stands ? answer : { ...answer, releasedText: released };
}

function toAnswer({ compat, attempts }: ParseResult): Readonly<Record<string, PlainJson>> {
  return {
    normalText: compat.normalText,
    calls: compat.calls.map(({ name, argumentsText, toolIndex }) => ({
      name,
      arguments: argumentsText,
      toolIndex,
    })),
    ...(compat.raises && { raises: true }),
    attempts: attempts.map(({ status, raw, span, name, argumentsText, diagnostics }) => ({
      status,
      raw,
      span: [...span],
      ...(name !== undefined && { name }),
      ...(argumentsText !== undefined && { argumentsText }),
      ...(diagnostics.length !== 0 && { diagnostics: diagnostics.map((item) => ({ ...item })) }),
    })),
  };
}
