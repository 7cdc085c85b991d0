import { Option, type Command } from "commander";
import type { Dialect } from "../../../../packages/tool-parsers/src/tool-call-parser.ts";
import { findReasoningParser } from "../../../../packages/tool-parsers/src/reasoning/registry.ts";
import type {
  ReasoningOptions,
  ReasoningResult,
  ReasoningStream,
} from "../../../../packages/tool-parsers/src/reasoning/reasoning-parser.ts";
import { answerJsonLines, textMember, toLinesInput } from "../../json-lines.ts";
import { readResponseTemplate, responseTemplateFlag } from "../../response-template-file.ts";
import { writeOut } from "../../write-out.ts";
import { chunksOf } from "./parse.ts";

interface ReasonFlags {
  readonly parser: string;
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  readonly force?: boolean;
  readonly in?: string;
  readonly responseTemplate?: string;
}

/** `turnwright reason`: splits sampled text into reasoning and the rest. */
export function defineReason(command: Command): void {
  command
    .description(
      'Reads lines {"id","text"} or {"id","chunks"} and answers each with reasoning and normalText; ' +
        "chunks go through the streaming parser one by one.",
    )
    .requiredOption("--parser <name>", "reasoning parser, such as qwen3 (see `parse --list`)")
    .addOption(
      new Option(
        "--dialect <dialect>",
        "engine whose parser to follow (default: sglang, if it has the parser)",
      ).choices(["sglang", "vllm"]),
    )
    .option(
      "--engine-version <release>",
      "the engine release (default: 2026-08; those of vLLM read alike)",
    )
    .option("--force", "the text begins inside the reasoning")
    .option(...responseTemplateFlag)
    .option("--in <file>", "read from a file instead of standard input")
    .action(async ({ parser: name, dialect, engineVersion, force, ...files }: ReasonFlags) => {
      const parser = findReasoningParser(name);
      const template = await readResponseTemplate(files.responseTemplate);
      const options: ReasoningOptions = {
        ...(dialect !== undefined && { dialect }),
        ...(engineVersion !== undefined && { engineVersion }),
        ...(force !== undefined && { forceReasoning: force }),
        ...template,
      };
      // Parses an empty text first, so that a problem with the flags is reported once and not for
      // each line.
      parser.parse("", options);
      process.exitCode = await answerJsonLines(toLinesInput(files.in), writeOut, (line) => {
        const { reasoning, normalText } = line.has("chunks")
          ? streamChunks(parser.createStream(options), chunksOf(line))
          : parser.parse(textMember(line, "text"), options);
        return { reasoning, normalText };
      });
    });
}

function streamChunks(stream: ReasoningStream, chunks: readonly string[]): ReasoningResult {
  const parts = [...chunks.map((chunk) => stream.push(chunk)), stream.end()];
  return {
    reasoning: parts.map(({ reasoning }) => reasoning).join(""),
    normalText: parts.map(({ normalText }) => normalText).join(""),
  };
}
