import { Option, type Command } from "commander";
import { toolsFromOpenAi } from "../../message.ts";
import { listReasoningParsers } from "../../parser/reasoning/registry.ts";
import { findToolCallParser, listToolCallParsers } from "../../parser/registry.ts";
import type { Dialect, ParseResult } from "../../parser/tool-call-parser.ts";
import type { PlainJson, PyDict } from "../../python/value.ts";
import { UsageError } from "../../errors.ts";
import { answerJsonLines, listMember, textMember } from "../json-lines.ts";
import { writeOut } from "../write-out.ts";

interface ParseFlags {
  readonly parser?: string;
  readonly dialect: Dialect;
  readonly engineVersion?: string;
  readonly in?: string;
  readonly list?: boolean;
}

/** `turnwright parse`: sampled text to tool calls. */
export function addParseCommand(program: Command): void {
  program
    .command("parse")
    .summary("read tool calls from sampled text")
    .description(
      'Reads lines {"id","text","tools","finishReason"?} and answers each with what the engine would\n' +
        "report (normalText, calls) and every attempt that the engine hides.",
    )
    .option("--parser <name>", "tool-call parser, such as qwen25")
    .addOption(
      new Option("--dialect <dialect>", "whose behaviour")
        .choices(["sglang", "vllm"])
        .default("sglang"),
    )
    .option("--engine-version <release>", "the engine release (default: 2026-08, for vllm 0.24)")
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
  for (const { name, aliases } of listReasoningParsers()) {
    const line = { parser: name, aliases, dialects: ["sglang"], reasoning: true };
    await writeOut(`${JSON.stringify(line)}\n`);
  }
}

async function parseLines(flags: ParseFlags): Promise<void> {
  if (flags.parser === undefined) {
    throw new UsageError("Missing --parser: name a parser (see `parse --list`)");
  }
  const parser = findToolCallParser(flags.parser);
  const input = { stdin: process.stdin, ...(flags.in === undefined ? {} : { file: flags.in }) };
  process.exitCode = await answerJsonLines(input, writeOut, (line) => {
    const finish = line.get("finishReason");
    const result = parser.parse(lineText(line), {
      tools: toolsFromOpenAi(listMember(line, "tools"), "tools"),
      dialect: flags.dialect,
      ...(flags.engineVersion === undefined ? {} : { engineVersion: flags.engineVersion }),
      ...(finish === "length" || finish === "stop" ? { finishReason: finish } : {}),
    });
    return toAnswer(result);
  });
}

/** The text of a line, whole or in chunks. */
export function lineText(line: PyDict): string {
  return line.has("chunks")
    ? listMember(line, "chunks").map(String).join("")
    : textMember(line, "text");
}

function toAnswer({ compat, attempts }: ParseResult): PlainJson {
  return {
    normalText: compat.normalText,
    calls: compat.calls.map(({ name, argumentsText, toolIndex }) => ({
      name,
      arguments: argumentsText,
      toolIndex,
    })),
    ...(compat.raises ? { raises: true } : {}),
    attempts: attempts.map(({ status, raw, span, name, argumentsText, diagnostics }) => ({
      status,
      raw,
      span: [...span],
      ...(name === undefined ? {} : { name }),
      ...(argumentsText === undefined ? {} : { argumentsText }),
      ...(diagnostics.length === 0
        ? {}
        : { diagnostics: diagnostics.map((item) => ({ ...item })) }),
    })),
  };
}
