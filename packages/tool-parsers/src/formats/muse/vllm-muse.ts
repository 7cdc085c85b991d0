import { readMuseArguments, holdsMuseCall, muse as markers } from "./muse-channels.ts";
import { isPyDict, PythonError, type PyValue } from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import { findAttributeTag } from "../../shared/tags/attribute-tags.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { EngineReading } from "../../grammar.ts";
import { iterateMuseMessages, type MuseMessage } from "./muse-messages.ts";
import { sinceVllm033, vllmReading, type VllmCall } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";
import { findByHead } from "../../shared/tags/between-tags.ts";

/** The differences between the two models. */
interface MuseVariant {
  /** True if a parameter that the tool's schema declares as a string is never read as JSON. */
  readonly keepsStrings: boolean;
  /** The recipients of reasoning; `undefined` stands for a message without a recipient. */
  readonly reasoning: readonly (string | undefined)[];
  readonly content: readonly (string | undefined)[];
  /** The recipients that are not tools. */
  readonly others: readonly string[];
}

/** Reads as `muse`, for Muse Spark. */
export const museReading = createReading({
  keepsStrings: true,
  reasoning: [undefined, "self"],
  content: ["user", "commentary"],
  others: ["self", "user", "commentary", "developer"],
});

/** Reads as `muse_glimmer`. */
export const museGlimmerReading = createReading({
  keepsStrings: false,
  reasoning: ["self"],
  content: [undefined, "user"],
  others: ["self", "user"],
});

/**
 * vLLM's parsers for Muse. Calls count in messages to tools, or anywhere if no message has a
 * header.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/muse_tool_parser.py`.
 */
function createReading(variant: MuseVariant): EngineReading {
  return sinceVllm033(
    vllmReading({
      release: holdsAll,
      extract(text, context) {
        const messages = [...iterateMuseMessages(text)];
        const content = contentOf(text, messages, variant);
        if (!holdsMuseCall(text)) return { content, calls: [] };
        const calls = catchPython(() => readCalls(text, messages, context, variant));
        return calls === undefined ? undefined : { content, calls };
      },
    }),
  );
}

function contentOf(
  text: string,
  messages: readonly MuseMessage[],
  { content, reasoning }: MuseVariant,
): string {
  const bodiesTo = (recipients: readonly (string | undefined)[]): string =>
    messages
      .filter(({ recipient }) => recipients.includes(recipient))
      .map(({ body }) => body)
      .join("");
  const shown = bodiesTo(content);
  if (shown !== "" || bodiesTo(reasoning) !== "") return shown;
  return text.includes(markers.message) ? "" : text;
}

/** Reads the calls. @throws PythonError if the engine raises, which leaves the text unchanged. */
function readCalls(
  text: string,
  messages: readonly MuseMessage[],
  context: ParseContext,
  { keepsStrings, others }: MuseVariant,
): VllmCall[] {
  const strings = keepsStrings ? stringParameters(context) : new Map<string, ReadonlySet<string>>();
  const toTools = messages.filter(
    ({ recipient }) => recipient !== undefined && !others.includes(recipient),
  );
  const isFramed = text.includes(markers.message);
  const scoped = toTools.length > 0 ? toTools.map(({ body }) => body).join("\n") : text;
  if (toTools.length === 0 && isFramed) return [];
  return findInvokes(scoped).flatMap((invoke) => {
    const tag = findAttributeTag(invoke, { name: "atem:invoke", attribute: "name" }, 0);
    if (tag === undefined) return [];
    const name = resolveName(tag.value, context);
    const values = readMuseArguments(invoke, strings.get(name));
    return [{ name, argumentsText: writeJson(values) }];
  });
}

function findInvokes(text: string): string[] {
  const opening = /<atem:invoke(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])/gu;
  return findByHead(text, opening, markers.invokeClose).map(({ start, end }) =>
    text.slice(start, end),
  );
}

/** Resolves a name without a namespace that the template has doubled: `f.f` is `f`. */
function resolveName(emitted: string, { toolPositions }: ParseContext): string {
  if (toolPositions.has(emitted)) return emitted;
  const dot = emitted.indexOf(".");
  const head = emitted.slice(0, Math.max(dot, 0));
  return head === emitted.slice(dot + 1) && toolPositions.has(head) ? head : emitted;
}

/** The names of string parameters, by tool. */
function stringParameters({ tools }: ParseContext): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    tools.flatMap((tool) => {
      const parameters = toolParameters(tool);
      if (tool.name === "" || !isPyDict(parameters)) return [];
      const properties = parameters.get("properties") ?? new Map<string, PyValue>();
      if (!isPyDict(properties))
        throw new PythonError("AttributeError", "properties are not a dict");
      const strings = [...properties].filter(
        ([, schema]) => isPyDict(schema) && schema.get("type") === "string",
      );
      return [[tool.name, new Set(strings.map(([key]) => key))] as const];
    }),
  );
}
