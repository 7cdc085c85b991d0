import type { SamplingConstraint } from "../../engine/engine.ts";
import type { ToolDefinition } from "../../message.ts";
import { toPlainJson, type PyDict } from "../../python/value.ts";
import { ClientError } from "../client-error.ts";
import type { AskedTurn, ToolChoice, UnkeptWish } from "../conversation.ts";

/** What a client wants the policy's turn to be held to. */
export type WantedForm =
  | { readonly type: "free" }
  /** The engine can be asked for it. */
  | { readonly type: "held"; readonly what: string; readonly constraint: SamplingConstraint }
  /** No engine can be asked for it. */
  | { readonly type: "unenforceable"; readonly what: string; readonly why: string };

/** What decides how a turn can be held to a form. */
interface TurnForms {
  /** The tool-call parser that reads the model's turns, by its name; absent where there is none. */
  readonly parser: string | undefined;
  /** Whether the prompt ends inside an opened reasoning block. */
  readonly reasoningOpened: boolean;
}

/**
 * The form that a request asks for, in words that engines understand: a schema for the text, or a tool
 * that must be called. A choice of tools comes first: a call is no text.
 *
 * @throws ClientError `invalid` where it names a tool that it does not give.
 */
export function wantedForm(asked: AskedTurn, forms: TurnForms): WantedForm {
  const { toolChoice, textFormat, tools, parallelCalls } = asked;
  const wanted = chosenTools(asked);
  if (wanted !== undefined) {
    const what = choiceName(toolChoice);
    const isCallNeeded = toolChoice.type !== "auto";
    return hold(what, forms, () => callTag(wanted, { ...forms, isCallNeeded, parallelCalls }));
  }
  if (textFormat === undefined) return { type: "free" };
  const what = `text format ${textFormat.type}`;
  if (tools.length > 0 && toolChoice.type !== "none") {
    // The policy may call a tool first, and a call does not keep to the schema.
    return { type: "unenforceable", what, why: "there are tools, which the policy may call" };
  }
  const schema = textFormat.type === "json-schema" ? textFormat.schema : { type: "object" };
  return hold(what, forms, () => ({ type: "json-schema", schema }));
}

/** Everything that a request asks for and that no turn here is held to, with any engine. */
export function unkeptWishes({ unkept, textFormat, toolChoice }: AskedTurn): readonly UnkeptWish[] {
  const isCallNeeded = toolChoice.type === "required" || toolChoice.type === "named";
  if (textFormat === undefined || !isCallNeeded) return unkept;
  const why = "the turn is to be a call, which is no text";
  return [...unkept, { what: `text format ${textFormat.type}`, why }];
}

function choiceName(choice: ToolChoice): string {
  const isLimited = choice.type !== "none" && choice.type !== "named" && choice.allowed;
  return `tool_choice ${isLimited ? `allowed_tools ${choice.type}` : choice.type}`;
}

/** The tools that may be called; `undefined` where nothing is asked for. */
function chosenTools({ toolChoice, tools }: AskedTurn): readonly ToolDefinition[] | undefined {
  switch (toolChoice.type) {
    case "none":
      return undefined;
    case "named":
      return namedTools([toolChoice.name], tools);
    case "auto":
    case "required": {
      const { type, allowed } = toolChoice;
      if (allowed !== undefined) return namedTools(allowed, tools);
      if (type === "auto") return undefined;
      if (tools.length === 0) throw badChoice("a tool must be called, and there is none");
      return tools;
    }
  }
}

function namedTools(
  names: readonly string[],
  tools: readonly ToolDefinition[],
): readonly ToolDefinition[] {
  const absent = names.find((name) => tools.every((tool) => tool.name !== name));
  if (absent !== undefined) throw badChoice(`there is no tool ${JSON.stringify(absent)}`);
  return tools.filter(({ name }) => names.includes(name));
}

function badChoice(problem: string): ClientError {
  return new ClientError("invalid", `Cannot read tool_choice: ${problem}`, {
    place: "tool_choice",
  });
}

function hold(
  what: string,
  { reasoningOpened }: TurnForms,
  build: () => SamplingConstraint | string,
): WantedForm {
  if (reasoningOpened) {
    return { type: "unenforceable", what, why: "the turn begins inside the policy's reasoning" };
  }
  const built = build();
  return typeof built === "string"
    ? { type: "unenforceable", what, why: built }
    : { type: "held", what, constraint: built };
}

/** How the models of a parser write a call around its arguments. */
const callMarkup: Readonly<
  Record<string, (name: string) => { readonly begin: string; readonly end: string }>
> = {
  qwen25: tagged,
  hermes: tagged,
};

function tagged(name: string) {
  const begin = `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `;
  return { begin, end: "}\n</tool_call>" };
}

/**
 * Calls of these tools and of no others: one or more, or any number beside text where none is needed.
 *
 * **Source:** mlc-ai/xgrammar docs/tutorials/structural_tag.md (`triggered_tags`), which SGLang and vLLM
 * hand on.
 *
 * @returns why it cannot be said, where it cannot.
 */
function callTag(
  tools: readonly ToolDefinition[],
  {
    parser,
    isCallNeeded,
    parallelCalls,
  }: Pick<TurnForms, "parser"> & {
    readonly isCallNeeded: boolean;
    readonly parallelCalls: boolean;
  },
): SamplingConstraint | string {
  const markup = parser === undefined ? undefined : callMarkup[parser];
  if (markup === undefined) {
    return `calls as ${parser ?? "this model"} writes them cannot be described to an engine`;
  }
  const tags = tools.map((tool) => {
    const content = { type: "json_schema", json_schema: schemaOf(tool) };
    return { type: "tag", ...markup(tool.name), content };
  });
  const format = {
    type: "triggered_tags",
    triggers: ["<tool_call>"],
    tags,
    at_least_one: isCallNeeded,
    stop_after_first: !parallelCalls,
  };
  return { type: "structural-tag", tag: { type: "structural_tag", format } };
}

function schemaOf({ openai }: ToolDefinition): Readonly<Record<string, unknown>> {
  const parameters = (openai.get("function") as PyDict).get("parameters");
  const schema = toPlainJson(parameters ?? new Map());
  return JSON.parse(JSON.stringify(schema)) as Readonly<Record<string, unknown>>;
}
