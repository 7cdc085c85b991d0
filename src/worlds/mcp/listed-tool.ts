import { isObject } from "../../values/is-object.ts";
import { isDeeper, maxValueDepth } from "../../json/nesting.ts";
import { shortJson } from "../../secrets/shorten.ts";

/** A tool of a server with the members that are used. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: ObjectSchemaJson;
}

interface ObjectSchemaJson {
  readonly type: "object";
  readonly [keyword: string]: unknown;
}

/** The reason why a tool cannot be used. */
interface UnusableTool {
  readonly problem: string;
}

/**
 * Reads a tool as a server sent it. Adds the type `object` and empty properties to the schema if
 * they are missing, because models and chat templates need them.
 */
export function readListedTool(sent: unknown): ListedTool | UnusableTool {
  if (!isObject(sent)) return { problem: "an entry of its list is not an object" };
  const { name, title, description } = sent;
  if (typeof name !== "string" || name === "") {
    return { problem: "an entry of its list has no name" };
  }
  if (isDeeper(sent["inputSchema"], maxValueDepth)) {
    const problem = `the schema of tool ${JSON.stringify(name)} nests deeper than ${maxValueDepth} levels`;
    return { problem };
  }
  const inputSchema = readInputSchema(sent["inputSchema"]);
  if (inputSchema === undefined) {
    return {
      problem:
        `tool ${JSON.stringify(name)} takes no object (its schema is ` +
        `${shortJson(sent["inputSchema"], 100)}), expected {"type": "object", …}`,
    };
  }
  return {
    name,
    ...(typeof title === "string" && { title }),
    ...(typeof description === "string" && { description }),
    inputSchema,
  };
}

/** Returns the description of a tool as JSON if it is not a text, so that the model does not see it. */
export function unreadDescription(sent: unknown): string | undefined {
  const description = isObject(sent) ? (sent["description"] ?? "") : "";
  return typeof description === "string" ? undefined : shortJson(description, 100);
}

function readInputSchema(sent: unknown): ObjectSchemaJson | undefined {
  if (sent === undefined || sent === null || sent === true) return emptySchema;
  if (!isObject(sent)) return undefined;
  const { type, properties } = sent;
  const types = Array.isArray(type) ? (type as unknown[]) : [type ?? "object"];
  const takesObject = types.some(
    (each) => typeof each === "string" && each.toLowerCase() === "object",
  );
  if (!takesObject) return undefined;
  return { ...sent, type: "object", properties: properties ?? {} };
}

const emptySchema: ObjectSchemaJson = { type: "object", properties: {} };
