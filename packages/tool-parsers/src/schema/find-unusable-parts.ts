import { isPyDict, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import { maxSchemaDepth, SchemaDocument } from "./schema-document.ts";
import { unusablePattern } from "./schema-pattern.ts";
import { isSchema } from "./schema-rule.ts";
import { applies, schemaRules } from "./schema-rules.ts";
import { subschemasOf } from "./subschemas.ts";

/** Maximum number of parts of one schema that are listed. */
const maxListed = 20;

/**
 * Lists the unusable parts of a JSON Schema, each with its place and the reason, such as `properties/a/type is
 * "txet", expected one of …`. `checkSchema()` does not check these parts.
 */
export function findUnusableParts(schema: PyDict): readonly string[] {
  const document = new SchemaDocument(schema);
  const found: string[] = [];
  const walk = (part: PyDict, path: readonly string[]): void => {
    if (path.length > maxSchemaDepth) return;
    for (const [keyword, given] of part) {
      const problem = given === null ? undefined : problemOf(keyword, given, part, document);
      if (problem !== undefined) found.push(`${[...path, keyword].join("/")} ${problem}`);
    }
    for (const [steps, inner] of subschemasOf(part)) {
      const place = [...path, ...steps];
      if (isPyDict(inner)) walk(inner, place);
      else if (!isSchema(inner) && inner !== null) {
        found.push(`${place.join("/")} is ${brief(inner)}, expected a schema`);
      }
    }
  };
  walk(schema, []);
  if (found.length <= maxListed) return found;
  return [...found.slice(0, maxListed), `and ${found.length - maxListed} more parts`];
}

function problemOf(
  keyword: string,
  given: PyValue,
  schema: PyDict,
  document: SchemaDocument,
): string | undefined {
  const rule = schemaRules.get(keyword);
  if (rule === undefined || !applies(rule, document.draft)) return undefined;
  if (!rule.isUsable(given, schema)) {
    const why = keyword === "pattern" && typeof given === "string" ? unusablePattern(given) : "";
    const because = why === undefined || why === "" ? "" : ` (${why})`;
    return `is ${brief(given)}${because}, expected ${rule.expected}`;
  }
  if (keyword === "patternProperties" && isPyDict(given)) {
    for (const source of given.keys()) {
      const why = unusablePattern(source);
      if (why !== undefined) return `has the pattern ${brief(source)}, which is not used: ${why}`;
    }
  }
  if (typeof given !== "string") return undefined;
  const target =
    keyword === "$ref"
      ? document.follow(schema, given)
      : keyword === "$dynamicRef" || keyword === "$recursiveRef"
        ? document.followDynamic(schema, given)
        : undefined;
  return target !== undefined && "problem" in target
    ? `has no target: ${target.problem}`
    : undefined;
}

function brief(value: PyValue): string {
  if (isPyDict(value)) return "an object";
  const text = JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "bigint" ? Number(inner) : inner instanceof Map ? {} : inner,
  );
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
