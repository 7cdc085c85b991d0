import { withinSteps, type StepBudget } from "../../pattern/step-budget.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../../../python-values/src/index.ts";

const jsonTypes = ["string", "number", "integer", "boolean", "array", "object", "null"] as const;

/** Keywords that describe a schema without constraining values. */
const annotations: readonly string[] = [
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "$comment",
  "$schema",
  "$id",
  "nullable",
];

/** Keywords that only one type has. */
const keywordsOfTypes = [
  [
    "object",
    "additionalProperties dependentRequired dependentSchemas maxProperties minProperties " +
      "patternProperties properties propertyNames required",
  ],
  ["array", "contains items maxContains maxItems minContains minItems prefixItems uniqueItems"],
  ["string", "format maxLength minLength pattern"],
  ["number", "exclusiveMaximum exclusiveMinimum maximum minimum multipleOf"],
] as const;

/**
 * Completes the schemas of a tool's parameters as SGLang does: follows references that only rename,
 * and writes out types that other keywords imply.
 *
 * **Source:** sgl-project/sglang 0.5.23, `typed_parameters()` of
 * `python/sglang/srt/function_call/response_template_structural_tag.py` and `_schema_types()` of
 * `kimik3_structural_tag.py` there.
 */
export function typeProperties(parameters: PyDict): PyDict | undefined {
  const properties = parameters.get("properties");
  if (!isPyDict(properties)) return undefined;
  return new Map([...properties].map(([key, schema]) => [key, completeWithin(schema, parameters)]));
}

/**
 * Maximum number of schemas that are visited for one parameter. In a client's schema, the number can double with each
 * reference.
 */
const maxSteps = 5_000;

interface Search {
  readonly root: PyDict;
  readonly budget: StepBudget;
}

/** Completes the schema, or returns it unchanged if it visits too many schemas. */
function completeWithin(schema: PyValue, root: PyDict): PyValue {
  const complete = withinSteps(maxSteps, (budget) =>
    completeSchema(schema, { root, budget }, new Set()),
  );
  return complete ?? schema;
}

function completeSchema(schema: PyValue, search: Search, seen: ReadonlySet<string>): PyValue {
  search.budget.spend();
  if (!isPyDict(schema)) return schema;
  const renamed = followAlias(schema, search, seen);
  if (renamed !== undefined) return renamed;
  const complete = new Map(schema);
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = schema.get(keyword);
    if (!isPyList(branches)) continue;
    complete.set(
      keyword,
      branches.map((branch) => completeSchema(branch, search, seen)),
    );
  }
  if (["type", "anyOf", "oneOf"].some((key) => schema.has(key))) return complete;
  const types = typesOf(complete, search, new Set());
  if (types.length === 0 || types.length === jsonTypes.length) return complete;
  return complete.set("type", types.length === 1 ? (types[0] as string) : types);
}

function followAlias(
  schema: PyDict,
  search: Search,
  seen: ReadonlySet<string>,
): PyValue | undefined {
  const aliases = ["$ref", "allOf"].filter((key) => schema.has(key));
  const rest = new Map([...schema].filter(([key]) => !aliases.includes(key)));
  const isPlain = [...rest.keys()].every((key) => annotations.includes(key));
  if (aliases.length !== 1 || !isPlain) return undefined;
  const reference = schema.get("$ref");
  const branches = schema.get("allOf");
  if (typeof reference === "string" && !seen.has(reference)) {
    const target = resolveReference(reference, search.root);
    if (!isPyDict(target)) return undefined;
    return completeSchema(new Map([...target, ...rest]), search, new Set([...seen, reference]));
  }
  const [target, second] = isPyList(branches) ? branches : [];
  if (!isPyDict(target) || second !== undefined) return undefined;
  return completeSchema(new Map([...target, ...rest]), search, seen);
}

function resolveReference(reference: string, root: PyDict): PyDict | boolean | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let target: PyValue | undefined = root;
  for (const escaped of reference.slice(2).split("/")) {
    const key = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    target = isPyDict(target) ? target.get(key) : undefined;
  }
  return isPyDict(target) || typeof target === "boolean" ? target : undefined;
}

function typesOf(schema: PyValue, search: Search, seen: ReadonlySet<string>): readonly string[] {
  search.budget.spend();
  if (!isPyDict(schema)) return schema === false ? [] : jsonTypes;
  const reference = schema.get("$ref");
  if (typeof reference === "string" && !seen.has(reference)) {
    const target = resolveReference(reference, search.root);
    if (target !== undefined) return typesOf(target, search, new Set([...seen, reference]));
  }
  const declared = schema.get("type");
  if (typeof declared === "string") return isJsonType(declared) ? [declared] : jsonTypes;
  if (isPyList(declared)) return jsonTypes.filter((type) => declared.includes(type));
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = schema.get(keyword);
    if (!isPyList(branches)) continue;
    const allowed = branches.filter(isSchema).flatMap((branch) => typesOf(branch, search, seen));
    return jsonTypes.filter((type) => allowed.includes(type));
  }
  return typesOfAll(schema.get("allOf"), search, seen) ?? typesOfValues(schema);
}

function isJsonType(name: string): boolean {
  return (jsonTypes as readonly string[]).includes(name);
}

function isSchema(value: PyValue): boolean {
  return typeof value === "boolean" || isPyDict(value);
}

/** The types that all of the schemas allow. Whole numbers are numbers. */
function typesOfAll(
  branches: PyValue | undefined,
  search: Search,
  seen: ReadonlySet<string>,
): readonly string[] | undefined {
  if (!isPyList(branches)) return undefined;
  const sets = branches
    .filter(isSchema)
    .map((branch) => new Set(typesOf(branch, search, seen)))
    .filter(({ size }) => size < jsonTypes.length);
  if (sets.length === 0) return undefined;
  const widened = sets.map((types) => (types.has("number") ? types.add("integer") : types));
  const common = jsonTypes.filter((type) => widened.every((types) => types.has(type)));
  return common.includes("number") ? common.filter((type) => type !== "integer") : common;
}

/** The types of the values that a schema lists, or that its keywords apply to. */
function typesOfValues(schema: PyDict): readonly string[] {
  const constant = schema.get("const");
  if (constant !== undefined) return [typeOf(constant)];
  const listed = schema.get("enum");
  if (isPyList(listed)) {
    const found = listed.map(typeOf);
    return jsonTypes.filter((type) => found.includes(type));
  }
  const fitting = keywordsOfTypes.find(([, keywords]) =>
    keywords.split(" ").some((keyword) => schema.has(keyword)),
  );
  return fitting === undefined ? jsonTypes : [fitting[0]];
}

function typeOf(value: PyValue): string {
  if (value === null) return "null";
  if (isPyList(value)) return "array";
  if (isPyDict(value)) return "object";
  const names = { boolean: "boolean", bigint: "integer", number: "number", string: "string" };
  return names[typeof value as keyof typeof names];
}
