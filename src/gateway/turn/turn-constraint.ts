import type { SamplingConstraint } from "../../engine/engine.ts";
import type { ToolDefinition } from "../../message.ts";
import { toPlainJson, type PyDict } from "../../python/value.ts";
import { ClientError } from "../client-error.ts";
import type { AskedTurn } from "../conversation.ts";

/** What a client wants the policy's turn to be held to. */
export type WantedForm =
  | { readonly type: "free" }
  /** The engine can be asked for it. */
  | { readonly type: "held"; readonly what: string; readonly constraint: SamplingConstraint }
  /** No engine can be asked for it. */
  | { readonly type: "unenforceable"; readonly what: string; readonly why: string };

/** What decides how a turn can be held to a form. */
export interface TurnForms {
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
  const { toolChoice, textFormat, tools } = asked;
  if (toolChoice.type === "required" || toolChoice.type === "named") {
    const what = `tool_choice ${toolChoice.type}`;
    const wanted = chosenTools(asked);
    return hold(what, forms, () => callTag(wanted, forms.parser));
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

function chosenTools({ toolChoice, tools }: AskedTurn): readonly ToolDefinition[] {
  const name = toolChoice.type === "named" ? toolChoice.name : undefined;
  const chosen = tools.filter((tool) => name === undefined || tool.name === name);
  if (chosen.length > 0) return chosen;
  const problem =
    name === undefined
      ? "a tool must be called, and there is none"
      : `there is no tool ${JSON.stringify(name)}`;
  throw new ClientError("invalid", `Cannot read tool_choice: ${problem}`, { place: "tool_choice" });
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
 * Calls of these tools and nothing else, one or more.
 *
 * **Source:** mlc-ai/xgrammar docs/tutorials/structural_tag.md (`triggered_tags`), which SGLang and vLLM
 * hand on.
 *
 * @returns why it cannot be said, where it cannot.
 */
function callTag(
  tools: readonly ToolDefinition[],
  parser: string | undefined,
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
    ...{ type: "triggered_tags", triggers: ["<tool_call>"], tags },
    ...{ at_least_one: true, stop_after_first: false },
  };
  return { type: "structural-tag", tag: { type: "structural_tag", format } };
}

function schemaOf({ openai }: ToolDefinition): Readonly<Record<string, unknown>> {
  const parameters = (openai.get("function") as PyDict).get("parameters");
  const schema = toPlainJson(parameters ?? new Map());
  return JSON.parse(JSON.stringify(schema)) as Readonly<Record<string, unknown>>;
}
