import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { UsageError, describeError } from "../../errors.ts";
import { toolsFromOpenAi, type ToolDefinition } from "../../message.ts";
import type { PyDict, PyValue } from "../../python/value.ts";
import { bindTemplate } from "../../renderer/bound-template.ts";
import type { CapabilityCard } from "../../renderer/capability-card.ts";
import type { HistoryPolicy } from "../../renderer/classify-template.ts";
import { compileChatTemplate } from "../../jinja/chat-template.ts";
import { createControlTokenGuard } from "../../renderer/control-token-guard.ts";
import { createRenderer } from "../../renderer/create-renderer.ts";
import { createTemplateRenderer } from "../../renderer/create-template-renderer.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { unseal } from "../../renderer/seal.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { readModelFolder } from "../../tokenizer/model-folder.ts";
import { rendererChoices, templateVariables } from "../build-run.ts";
import {
  LineError,
  answerJsonLines,
  dictListMember,
  dictMember,
  listMember,
  type LinesInput,
} from "../json-lines.ts";
import { addSettings, resolveSettings, textOf } from "../option.ts";
import { rolloutSettings } from "../rollout-settings.ts";
import { writeOut } from "../write-out.ts";

interface TemplateFlags {
  readonly template?: string;
  readonly model?: string;
  readonly in?: string;
}

/** `turnwright render`, `delta` and `template`: what a chat template and tokenizer do. */
export function addTemplateCommands(program: Command): void {
  program
    .command("render")
    .summary("render conversations with a chat template")
    .description(
      'Reads lines {"id","messages","tools"?,"addGenerationPrompt"?,"variables"?,"now"?} and answers\n' +
        "each with its text and, with --model, its token ids.",
    )
    .option("--template <file>", "a chat template")
    .option("--model <dir>", "a model folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(renderLines);
  program
    .command("delta")
    .summary("show what the environment adds to the ledger after a turn")
    .description(
      'Reads lines {"id","messages","environment","lastSampledId"?,"tools"?,"variables"?}, where the\n' +
        "messages end with the assistant's turn, and answers each with ids, text and closeSynthesised.",
    )
    .requiredOption("--model <dir>", "a model folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(deltaLines);
  const command = program
    .command("template")
    .summary("measure a chat template: the capability card")
    .description(
      "Prints one JSON object: what was measured of the template and its tokenizer.\n" +
        "Settings are put in the place of what was found, as they are for a rollout.",
    )
    .option("--template <file>", "a chat template")
    .option("--model <dir>", "a model folder");
  addSettings(command, cardSettings).action(printCard);
}

const cardSettingNames = [
  "parser",
  "reasoning-parser",
  "dialect",
  "engine-version",
  "stop-token",
  "delta-base",
  "template-variable",
  "history",
];

/** Settings of a rollout that the card depends on. */
const cardSettings = rolloutSettings.filter(({ name }) => cardSettingNames.includes(name));

async function renderLines(flags: TemplateFlags): Promise<void> {
  const { source, specialTokens, codec } = await openTemplate(flags);
  const template = compileChatTemplate(source);
  process.exitCode = await answerJsonLines(inputOf(flags), writeOut, async (line) => {
    const variables = new Map<string, PyValue>([
      ...specialTokens,
      ...dictMember(line, "variables"),
    ]);
    const bound = bindTemplate(template, variables, readNow(line));
    const conversation = {
      messages: dictListMember(line, "messages"),
      tools: (line.get("tools") ?? null) === null ? null : toolsOf(line).map((tool) => tool.openai),
    };
    const addGenerationPrompt = line.get("addGenerationPrompt") === true;
    if (codec === undefined)
      return { text: bound.render({ ...conversation, addGenerationPrompt }) };
    const guard = createControlTokenGuard({
      codec,
      policy: "neutralise",
      guardSystem: false,
      surroundings: [source, variables],
    });
    const { messages, tools, seal } = guard.seal(conversation.messages, conversation.tools);
    const text = bound.render({ messages, tools, addGenerationPrompt });
    return { text: unseal(text, seal), ids: await guard.encode(text, seal) };
  });
}

async function openTemplate(flags: TemplateFlags): Promise<{
  readonly source: string;
  readonly specialTokens: ReadonlyMap<string, PyValue>;
  readonly codec?: TokenCodec;
}> {
  if (flags.model !== undefined) {
    const codec = await loadTokenCodec(flags.model);
    const folder = await readModelFolder(flags.model);
    const source =
      flags.template === undefined ? folder.chatTemplate : await readTemplate(flags.template);
    if (source === undefined) {
      throw new UsageError(
        `Cannot render for the model in ${flags.model}: it has no chat template; name one with --template`,
      );
    }
    return { source, specialTokens: new Map(Object.entries(folder.specialTokens)), codec };
  }
  if (flags.template === undefined) throw new UsageError("Missing --template FILE or --model DIR");
  return { source: await readTemplate(flags.template), specialTokens: new Map() };
}

async function readTemplate(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read the chat template ${file}: ${describeError(error)}`);
  }
}

function readNow(line: PyDict): Date {
  const text = line.get("now");
  if (text === undefined || text === null) return new Date();
  // A time without a zone is the clock on the wall, as strftime prints it.
  const date = typeof text === "string" ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(date.getTime())) throw new LineError("bad-line", '"now" must be an ISO date');
  return date;
}

function toolsOf(line: PyDict): readonly ToolDefinition[] {
  return toolsFromOpenAi(listMember(line, "tools"), "tools");
}

function inputOf(flags: TemplateFlags): LinesInput {
  return { stdin: process.stdin, ...(flags.in === undefined ? {} : { file: flags.in }) };
}

async function deltaLines(flags: TemplateFlags & { readonly model: string }): Promise<void> {
  const renderers = new Map<string, Promise<Renderer>>();
  const rendererFor = (variables: PyDict): Promise<Renderer> => {
    const key = JSON.stringify([...variables], (_, value: unknown) =>
      typeof value === "bigint" ? `${value}n` : value,
    );
    const known = renderers.get(key) ?? createRenderer({ modelDir: flags.model, variables });
    renderers.set(key, known);
    return known;
  };
  await rendererFor(new Map());
  process.exitCode = await answerJsonLines(inputOf(flags), writeOut, async (line) => {
    const renderer = await rendererFor(dictMember(line, "variables"));
    const messages = dictListMember(line, "messages");
    const assistant = messages.at(-1);
    if (assistant?.get("role") !== "assistant") {
      throw new LineError("bad-line", '"messages" must end with the turn of role assistant');
    }
    const delta = await renderer.delta({
      history: messages.slice(0, -1),
      assistant,
      environment: dictListMember(line, "environment"),
      tools: toolsOf(line),
      lastSampledId: lastSampledId(line),
    });
    const { ids, text, closeSynthesised, droppedStopId, foreignStopId } = delta;
    return {
      ids,
      text,
      closeSynthesised,
      ...(droppedStopId === undefined ? {} : { droppedStopId }),
      ...(foreignStopId === undefined ? {} : { foreignStopId }),
    };
  });
}

/** Where the line names no id, the policy closed nothing: the close is then part of the delta. */
function lastSampledId(line: PyDict): number | undefined {
  const value = line.get("lastSampledId");
  if (value === null || value === undefined) return undefined;
  if (typeof value !== "bigint") {
    throw new LineError("bad-line", '"lastSampledId" must be a whole number');
  }
  return Number(value);
}

async function printCard(flags: TemplateFlags & Readonly<Record<string, unknown>>): Promise<void> {
  const { model, template } = flags;
  const settings = await resolveSettings(cardSettings, flags, undefined);
  const choices = {
    ...rendererChoices(settings),
    variables: templateVariables(settings),
    historyPolicy: textOf(settings, "history") as HistoryPolicy,
  };
  if (model !== undefined) {
    await writeCard((await createRenderer({ modelDir: model, ...choices })).card);
  } else if (template !== undefined) {
    const { stopTokens, deltaBase, ...others } = choices;
    if (stopTokens !== undefined || deltaBase !== undefined) {
      throw new UsageError("Cannot use --stop-token or --delta-base without --model DIR");
    }
    await writeCard((await createTemplateRenderer({ templateFile: template, ...others })).card());
  } else {
    throw new UsageError("Missing --template FILE or --model DIR");
  }
}

async function writeCard(card: CapabilityCard): Promise<void> {
  await writeOut(`${JSON.stringify(card, null, process.stdout.isTTY ? 2 : 0)}\n`);
}
