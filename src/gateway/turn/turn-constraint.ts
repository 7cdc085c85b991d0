import type { SamplingConstraint } from "../../engine/engine.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import type { ToolDefinition } from "../../message.ts";
import { toPlainJson, type PyDict } from "../../../packages/python-values/src/value.ts";
import { ClientError } from "../client-error.ts";
import type {
  ReplyFinish,
  ReplyPart,
  RequestedTurn,
  ToolChoice,
  UnsupportedFeature,
} from "../conversation.ts";

/** The form that a request requires of the turn. */
export type WantedForm =
  | { readonly type: "free" }
  | HeldForm
  /** A form that no engine can enforce. */
  | { readonly type: "unenforceable"; readonly what: string; readonly why: string };

/** A form that the engine can be asked to enforce. */
export interface HeldForm {
  readonly type: "held";
  readonly what: string;
  readonly constraint: SamplingConstraint;
}

/** The facts that decide how a form can be enforced. */
interface TurnForms {
  /** The name of the parser that reads the model's calls. Absent if the model has no parser. */
  readonly parser: string | undefined;
  /** True if the prompt ends inside an open reasoning block. */
  readonly reasoningOpened: boolean;
}

/**
 * Returns the form that a request requires: a schema for the text, or a tool that must be called. A
 * tool choice takes precedence, because a call is not text.
 *
 * @throws ClientError `invalid` if the request names a tool that it does not give.
 */
export function wantedForm(requested: RequestedTurn, forms: TurnForms): WantedForm {
  const { toolChoice, textFormat, tools, parallelCalls } = requested;
  const wanted = chosenTools(requested);
  if (wanted !== undefined) {
    const what = choiceName(toolChoice);
    const isCallNeeded = toolChoice.type !== "auto";
    return hold(what, forms, () => callTag(wanted, { ...forms, isCallNeeded, parallelCalls }));
  }
  if (textFormat === undefined) return { type: "free" };
  const what = `text format ${textFormat.type}`;
  if (tools.length > 0 && toolChoice.type !== "none") {
    // The policy may call a tool, and a call does not follow the schema.
    return {
      type: "unenforceable",
      what,
      why: "the request gives tools, which the policy may call instead",
    };
  }
  const schema = textFormat.type === "json-schema" ? textFormat.schema : { type: "object" };
  return hold(what, forms, () => ({ type: "json-schema", schema }));
}

/**
 * True if a complete turn does not have the form that the request requires, although the engine accepted it: some
 * servers accept a constraint and ignore it. A turn that was cut has no form to check.
 */
export function isFormIgnored(
  requested: RequestedTurn,
  { parts, finish }: { readonly parts: readonly ReplyPart[]; readonly finish: ReplyFinish },
): boolean {
  if (finish.type === "length" || finish.type === "stop-text") return false;
  const chosen = chosenTools(requested)?.map(({ name }) => name);
  if (chosen === undefined) return !isJson(parts);
  const called = parts.filter((part) => part.type === "call").map(({ name }) => name);
  if (called.length === 0) return requested.toolChoice.type !== "auto";
  const isOther = ({ name }: ToolDefinition) => called.includes(name) && !chosen.includes(name);
  return requested.tools.some(isOther);
}

function isJson(parts: readonly ReplyPart[]): boolean {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  return parseJsonText(text) !== undefined;
}

/** Returns the request's features that no engine can provide here. */
export function unsupportedFeatures({
  unsupported,
  textFormat,
  toolChoice,
}: RequestedTurn): readonly UnsupportedFeature[] {
  const isCallNeeded = toolChoice.type === "required" || toolChoice.type === "named";
  if (textFormat === undefined || !isCallNeeded) return unsupported;
  const why = "the turn must be a call, which is not text";
  return [...unsupported, { what: `text format ${textFormat.type}`, why }];
}

function choiceName(choice: ToolChoice): string {
  const isLimited = choice.type !== "none" && choice.type !== "named" && choice.allowed;
  return `tool_choice ${isLimited ? `allowed_tools ${choice.type}` : choice.type}`;
}

/** Returns the tools that may be called, or `undefined` if the request does not limit them. */
function chosenTools({ toolChoice, tools }: RequestedTurn): readonly ToolDefinition[] | undefined {
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
      if (tools.length === 0) throw badChoice("a tool must be called, and the request gives none");
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

/** The markup of a format whose calls an engine can enforce. */
interface CallMarkup {
  /** The text that begins every call. */
  readonly trigger: string;
  /** Returns the texts around the arguments of a call of this tool. `begin` starts with `trigger`. */
  readonly around: (name: string) => { readonly begin: string; readonly end: string };
}

const toolCallTags: CallMarkup = {
  trigger: "<tool_call>",
  around: (name) => ({
    begin: `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `,
    end: "}\n</tool_call>",
  }),
};

/** The markup of calls, by parser. */
const callMarkup: Readonly<Record<string, CallMarkup>> = {
  qwen25: toolCallTags,
  hermes: toolCallTags,
};

/**
 * Returns a constraint to calls of these tools: one or more, or any number beside text if no call
 * is required.
 *
 * **Source:** mlc-ai/xgrammar docs/tutorials/structural_tag.md (`triggered_tags`), which SGLang and
 * vLLM pass on.
 *
 * @returns the constraint, or the reason why it cannot be expressed.
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
    return { type: "tag", ...markup.around(tool.name), content };
  });
  const format = {
    type: "triggered_tags",
    triggers: [markup.trigger],
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
