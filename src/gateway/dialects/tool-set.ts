import { toolFromOpenAi, type ToolDefinition } from "../../message.ts";
import { isWellFormed } from "../../text/well-formed.ts";
import { exactOf } from "../../json/exact-json.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { toPyValue, type PlainJson } from "../../../packages/python-values/src/value.ts";
import type { CallForm } from "../call-form.ts";
import type { ToolSet, UnsupportedFeature } from "../conversation.ts";
import type { DialectName, Recollection } from "./dialect.ts";
import type { AddedTool } from "./history.ts";
import {
  surrogateError,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  unreadMembers,
  type Json,
} from "./read-body.ts";

/** A tool of a request, independent of the dialect. */
interface GivenTool {
  readonly name: string;
  readonly description?: unknown;
  /** A JSON Schema. Absent: the tool has no parameters. */
  readonly parameters?: unknown;
  /** The form of calls of this tool. Absent: a function with a JSON object. */
  readonly form?: CallForm;
  /** The tool's namespace, if it has one. */
  readonly namespace?: string | undefined;
}

/** Collects the tools of a request, its unsupported features and its ignored members. */
export class ToolCollector {
  readonly #tools: ToolDefinition[] = [];
  readonly #given = new Map<string, Pick<GivenTool, "form" | "namespace">>();
  readonly #unsupported: UnsupportedFeature[] = [];
  readonly #ignored = new Set<string>();

  /** Adds a tool that the policy sees. `place` is its path in the body. */
  add({ name, description, parameters, form, namespace }: GivenTool, place: string): void {
    if (name === "") throw invalid(`${place}.name`, "expected a name");
    const other = this.#given.get(name);
    // The client could not distinguish the two tools' calls.
    if (other !== undefined && (other.form !== form || other.namespace !== namespace)) {
      const problem = `a tool of another type or namespace has the name ${JSON.stringify(name)}`;
      throw invalid(`${place}.name`, problem);
    }
    const body: Record<string, unknown> = { name };
    if (typeof description === "string") body["description"] = description;
    // Templates print the schema, so its numbers and key order are kept.
    body["parameters"] = isAbsent(parameters)
      ? { type: "object", properties: {} }
      : exactOf(parameters);
    const openai = toPyValue({ type: "function", function: body } as PlainJson);
    if (!isWellFormed(stringifyPythonJson(openai, { ensureAscii: false }))) {
      throw invalid(place, surrogateError);
    }
    this.#tools.push(toolFromOpenAi(openai, place));
    this.#given.set(name, { ...(form && { form }), namespace });
  }

  /** Records a server tool, which the policy does not see. */
  leaveOut(type: string): void {
    this.addUnsupported(`tool ${type}`, "a server would run this tool, and there is none here");
  }

  /** Records a feature that is not supported. */
  addUnsupported(what: string, why: string): void {
    this.#unsupported.push({ what, why });
  }

  /** Records the members of a tool's object that are not read. */
  ignoreOthers(tool: Json, place: string, read: readonly string[]): void {
    const { strict } = tool;
    if (strict === true) {
      const why = "the arguments of calls are not constrained to the schemas of tools";
      this.addUnsupported("strict tools", why);
    }
    refuseOtherSchema(tool, place, read);
    const readNames = [...read, ...harmlessMembers];
    // Without list indexes, so that equal members add up in the counts.
    const where = place.replaceAll(/\[\d+\]/g, "[]");
    for (const name of unreadMembers(tool, where, readNames)) this.#ignored.add(name);
  }

  get set(): ToolSet {
    const forms = [...this.#given].flatMap(([name, { form }]) =>
      form === undefined ? [] : [[name, form] as const],
    );
    return {
      tools: this.#tools,
      callForms: new Map(forms),
      unsupported: this.#unsupported,
      ignoredFields: [...this.#ignored],
    };
  }
}

/** The names that protocols have for a tool's schema. */
const schemaNames = ["parameters", "input_schema", "inputSchema"];

/**
 * Refuses a schema under a wrong member name.
 *
 * @throws ClientError if the schema has another protocol's name, because the policy would see no parameters.
 */
function refuseOtherSchema(tool: Json, place: string, read: readonly string[]): void {
  const own = schemaNames.find((name) => read.includes(name));
  if (own === undefined || !isAbsent(tool[own])) return;
  const other = schemaNames.find((name) => !isAbsent(tool[name]));
  if (other !== undefined) throw invalid(`${place}.${other}`, `give the tool's schema in ${own}`);
}

/** Members that change nothing for the policy and the client, so that they do not count as ignored. */
const harmlessMembers = ["type", "strict", "cache_control", "eager_input_streaming"];

/** Reads one tool of any type. */
type ReadTool = (tool: Json, place: string, into: ToolCollector) => void;

/**
 * Reads the tools of a request. A list that equals one of the session's earlier requests is taken
 * from the cache.
 */
export function toolsOf(
  tools: unknown,
  {
    dialect,
    recollection,
    field = "tools",
    added = [],
    read,
  }: {
    readonly dialect: DialectName;
    readonly recollection: Recollection;
    /** The body's field that contains the list. */
    readonly field?: string;
    /** Tools that the conversation adds to the list. */
    readonly added?: readonly AddedTool[];
    readonly read: ReadTool;
  },
): ToolSet {
  if (isAbsent(tools) && added.length === 0) return new ToolCollector().set;
  const list = isAbsent(tools) ? [] : listOf(tools, field);
  const readAll = (): ToolSet => {
    const collector = new ToolCollector();
    list.forEach((tool, index) => {
      const place = `${field}[${index}]`;
      read(objectOf(tool, place), place, collector);
    });
    for (const { place, tool } of added) read(objectOf(tool, place), place, collector);
    return collector.set;
  };
  // The cache key includes the field, because the same list in another field means something else.
  const isAlone = field === "tools" && added.length === 0;
  const cacheKey = isAlone ? list : [field, list, ...added.map(({ tool }) => tool)];
  return recollection.toolsOf?.(dialect, cacheKey, readAll) ?? readAll();
}

/**
 * Returns the error for a tool of an unknown type, without which the policy would play a different
 * task.
 *
 * @param remedy - Advice on how to give such a tool in this dialect.
 */
export function unknownTool(place: string, type: unknown, remedy: string): Error {
  return invalid(`${place}.type`, `there is no tool of type ${JSON.stringify(type)}; ${remedy}`);
}
