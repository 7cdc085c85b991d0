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

/** The constraint that a request requires for the turn. `free` is none. */
export type WantedConstraint =
  | { readonly type: "free" }
  | EnforceableConstraint
  /** A constraint that no engine can enforce here. `why` is the reason. */
  | { readonly type: "unenforceable"; readonly what: string; readonly why: string };

/**
 * A constraint on the turn's text or calls that an engine can enforce, such as a JSON schema. `what` names it in
 * messages.
 */
export interface EnforceableConstraint {
  readonly type: "enforceable";
  readonly what: string;
  readonly constraint: SamplingConstraint;
}

/** The facts that decide whether an engine can enforce a constraint on the turn. */
interface TurnFacts {
  /** The name of the parser that reads the model's calls. Absent if the model has no parser. */
  readonly parser: string | undefined;
  /** True if the prompt ends inside an open reasoning block. */
  readonly reasoningOpened: boolean;
}

/**
 * Returns the constraint that a request requires: a schema for the text, or tools that may or must be called. A tool
 * choice takes precedence over a schema, because a call is not text.
 *
 * @throws ClientError `invalid` if the request names a tool that it does not give.
 */
export function wantedConstraint(requested: RequestedTurn, facts: TurnFacts): WantedConstraint {
  const { toolChoice, textFormat, tools, parallelCalls } = requested;
  const wanted = chosenTools(requested);
  if (wanted !== undefined) {
    const what = choiceName(toolChoice);
    const isCallNeeded = toolChoice.type !== "auto";
    return toConstraint(what, facts, () =>
      callTag(wanted, { ...facts, isCallNeeded, parallelCalls }),
    );
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
  return toConstraint(what, facts, () => ({ type: "json-schema", schema }));
}

/**
 * True if a complete turn violates the constraint, although the engine accepted it: some servers accept a constraint
 * and ignore it. False for a turn that was cut.
 */
export function isConstraintIgnored(
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

function toConstraint(
  what: string,
  { reasoningOpened }: TurnFacts,
  build: () => SamplingConstraint | string,
): WantedConstraint {
  if (reasoningOpened) {
    return { type: "unenforceable", what, why: "the turn begins inside the policy's reasoning" };
  }
  const built = build();
  return typeof built === "string"
    ? { type: "unenforceable", what, why: built }
    : { type: "enforceable", what, constraint: built };
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
  }: Pick<TurnFacts, "parser"> & {
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
