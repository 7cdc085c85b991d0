import type { Command } from "commander";
import { UsageError, describeError } from "../../../errors.ts";
import { compileChatTemplate } from "../../../../packages/chat-template/src/chat-template.ts";
import type { PyDict, PyValue } from "../../../../packages/python-values/src/value.ts";
import { bindTemplate } from "../../../renderer/bound-template.ts";
import { createControlTokenGuard } from "../../../renderer/guard/control-token-guard.ts";
import { unseal } from "../../../renderer/guard/seal.ts";
import type { TokenCodec } from "../../../tokenizer/codec.ts";
import { readModelFolder } from "../../../tokenizer/model-folder.ts";
import {
  LineError,
  answerJsonLines,
  dictListMember,
  dictMember,
  toLinesInput,
  toolsMember,
} from "../../json-lines.ts";
import { writeOut } from "../../write-out.ts";
import { readTextFile } from "../../../text/decode-text.ts";

interface RenderFlags {
  readonly template?: string;
  readonly model?: string;
  readonly in?: string;
}

/** `turnwright render`: renders conversations with a chat template. */
export function defineRender(command: Command): void {
  command
    .description(
      'Reads lines {"id","messages","tools"?,"addGenerationPrompt"?,"variables"?,"now"?} and answers ' +
        "each with its text and, with --model, its token ids.",
    )
    .option("--template <file>", "a chat template")
    .option("--model <dir>", "a model folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(render);
}

async function render(flags: RenderFlags): Promise<void> {
  const opened = await openTemplate(flags);
  const template = compileChatTemplate(opened.source);
  try {
    process.exitCode = await answerJsonLines(toLinesInput(flags.in), writeOut, (line) =>
      answer(line, { ...opened, template }),
    );
  } finally {
    await opened.codec?.close?.();
  }
}

interface OpenTemplate {
  readonly source: string;
  readonly specialTokens: ReadonlyMap<string, PyValue>;
  /** The tokenizer of the model. Absent if no model is named. */
  readonly codec?: TokenCodec;
}

async function answer(
  line: PyDict,
  opened: OpenTemplate & { readonly template: ReturnType<typeof compileChatTemplate> },
) {
  const { source, specialTokens, codec, template } = opened;
  const variables = new Map<string, PyValue>([...specialTokens, ...dictMember(line, "variables")]);
  const bound = bindTemplate(template, variables, readNow(line));
  const hasTools = (line.get("tools") ?? null) !== null;
  const conversation = {
    messages: dictListMember(line, "messages"),
    tools: hasTools ? toolsMember(line).map((tool) => tool.openai) : null,
  };
  const addGenerationPrompt = line.get("addGenerationPrompt") === true;
  if (codec === undefined) {
    return { text: bound.render({ ...conversation, addGenerationPrompt }) };
  }
  const guard = createControlTokenGuard({
    codec,
    policy: "neutralise",
    guardSystem: false,
    surroundings: [source, variables],
  });
  const { messages, tools, seal } = guard.seal(conversation.messages, conversation.tools);
  const text = bound.render({ messages, tools, addGenerationPrompt });
  return { text: await unseal(text, seal), ids: await guard.encode(text, seal) };
}

async function openTemplate({ model, template }: RenderFlags): Promise<OpenTemplate> {
  if (model === undefined) {
    if (template === undefined) throw new UsageError("Missing --template FILE or --model DIR");
    return { source: await readTemplate(template), specialTokens: new Map() };
  }
  const { loadTokenCodec } = await import("../../../tokenizer/load-codec.ts");
  const { chatTemplate, specialTokens } = await readModelFolder(model);
  const source = template === undefined ? chatTemplate : await readTemplate(template);
  if (source === undefined) {
    throw new UsageError(
      `Cannot render for the model in ${model}: it has no chat template; name one with --template`,
    );
  }
  const codec = await loadTokenCodec(model);
  return { source, specialTokens: new Map(Object.entries(specialTokens)), codec };
}

async function readTemplate(file: string): Promise<string> {
  try {
    return await readTextFile(file);
  } catch (error) {
    throw new UsageError(`Cannot read the chat template ${file}: ${describeError(error)}`);
  }
}

function readNow(line: PyDict): Date {
  const text = line.get("now");
  if (text === undefined || text === null) return new Date();
  // A time without a zone is local time, as strftime prints it.
  const date = typeof text === "string" ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(date.getTime())) throw new LineError("bad-line", '"now" must be an ISO date');
  return date;
}
