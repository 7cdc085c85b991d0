import { toolFromOpenAi, type ToolDefinition } from "../../message.ts";
import { isWellFormed } from "../../text/well-formed.ts";
import { exactOf } from "../../python/json/exact-json.ts";
import { stringifyPythonJson } from "../../python/json/json-stringify.ts";
import { toPyValue, type PlainJson } from "../../python/value.ts";
import type { CallForm } from "../call-form.ts";
import type { ToolSet, UnkeptWish } from "../conversation.ts";
import type { DialectName, Recollection } from "./dialect.ts";
import type { AddedTool } from "./history.ts";
import {
  brokenPair,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  unreadMembers,
  type Json,
} from "./read-body.ts";

/** A tool as a request gives it, in the words of all dialects. */
interface GivenTool {
  readonly name: string;
  readonly description?: unknown;
  /** A JSON Schema; absent: the tool has no parameters. */
  readonly parameters?: unknown;
  /** The form in which its calls go to the client; absent for a function with a JSON object. */
  readonly form?: CallForm;
  /** The group that it stands in; absent where it stands in none. */
  readonly namespace?: string | undefined;
}

/** Collects the tools of a request, and what of them nothing here keeps. */
export class ToolCollector {
  readonly #tools: ToolDefinition[] = [];
  readonly #given = new Map<string, Pick<GivenTool, "form" | "namespace">>();
  readonly #unkept: UnkeptWish[] = [];
  readonly #ignored = new Set<string>();

  /** Adds a tool that the policy is shown. `place` says where it stands in the body. */
  add({ name, description, parameters, form, namespace }: GivenTool, place: string): void {
    if (name === "") throw invalid(`${place}.name`, "expected a name");
    const other = this.#given.get(name);
    // The client could not tell a call of the one from a call of the other.
    if (other !== undefined && (other.form !== form || other.namespace !== namespace)) {
      const problem = `a tool of another type or namespace has the name ${JSON.stringify(name)}`;
      throw invalid(`${place}.name`, problem);
    }
    const body: Record<string, unknown> = { name };
    if (typeof description === "string") body["description"] = description;
    // Templates print the schema: its numbers and the order of its keys are the client's.
    body["parameters"] = isAbsent(parameters)
      ? { type: "object", properties: {} }
      : exactOf(parameters);
    const openai = toPyValue({ type: "function", function: body } as PlainJson);
    if (!isWellFormed(stringifyPythonJson(openai, { ensureAscii: false }))) {
      throw invalid(place, brokenPair);
    }
    this.#tools.push(toolFromOpenAi(openai, place));
    this.#given.set(name, { ...(form && { form }), namespace });
  }

  /** Notes a tool that a server would run: the policy is not shown it. */
  leaveOut(type: string): void {
    this.unkept(`tool ${type}`, "a server would run this tool, and there is none here");
  }

  /** Notes a wish that nothing here keeps. */
  unkept(what: string, why: string): void {
    this.#unkept.push({ what, why });
  }

  /** Notes the members of a tool's object that are not read. */
  ignoreOthers(tool: Json, place: string, read: readonly string[]): void {
    const { strict } = tool;
    if (strict === true) {
      const why = "the arguments of calls are not held to the schemas of tools";
      this.unkept("strict tools", why);
    }
    refuseOtherSchema(tool, place, read);
    const known = [...read, ...harmlessMembers];
    // The place among the tools says nothing: each would be counted apart.
    const where = place.replaceAll(/\[\d+\]/g, "[]");
    for (const name of unreadMembers(tool, where, known)) this.#ignored.add(name);
  }

  get set(): ToolSet {
    const forms = [...this.#given].flatMap(([name, { form }]) =>
      form === undefined ? [] : [[name, form] as const],
    );
    return {
      tools: this.#tools,
      callForms: new Map(forms),
      unkept: this.#unkept,
      ignoredFields: [...this.#ignored],
    };
  }
}

/** The names that protocols have for the schema of a tool. */
const schemaNames = ["parameters", "input_schema", "inputSchema"];

/** @throws ClientError where a tool has its schema under another protocol's name: the policy would be shown none. */
function refuseOtherSchema(tool: Json, place: string, read: readonly string[]): void {
  const own = schemaNames.find((name) => read.includes(name));
  if (own === undefined || !isAbsent(tool[own])) return;
  const other = schemaNames.find((name) => !isAbsent(tool[name]));
  if (other !== undefined) throw invalid(`${place}.${other}`, `give the tool's schema in ${own}`);
}

/** Members of tools that change nothing that the policy or the client could notice. */
const harmlessMembers = ["type", "strict", "cache_control", "eager_input_streaming"];

/** Reads a tool of any type. */
type ReadTool = (tool: Json, place: string, into: ToolCollector) => void;

/**
 * Reads the tools of a request. Most requests give those that the one before it gave: these are not read
 * again.
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
    /** The field of the body that holds the list. */
    readonly field?: string;
    /** Tools that the conversation gives beside the list. */
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
  // What is remembered of a list of tools is not what the same list says in another field.
  const isAlone = field === "tools" && added.length === 0;
  const known = isAlone ? list : [field, list, added.map(({ tool }) => tool)];
  return recollection.toolsOf?.(dialect, known, readAll) ?? readAll();
}

/**
 * Refuses a tool of a type that is not known: the policy would play without it.
 *
 * @param remedy - How the dialect gives a tool that needs no type of its own.
 */
export function unknownTool(place: string, type: unknown, remedy: string): Error {
  return invalid(`${place}.type`, `there is no tool of type ${JSON.stringify(type)}; ${remedy}`);
}
