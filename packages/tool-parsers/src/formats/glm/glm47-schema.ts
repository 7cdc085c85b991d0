import { withinSteps, type StepBudget } from "../../pattern/step-budget.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  pythonEquals,
  PythonError,
  pythonTypeName,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { parsePythonInt } from "../../shared/python/python-number.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { schemaTypeOf } from "../../shared/schema/schema-type.ts";

/**
 * Maximum number of schemas that one question visits. In a client's schema, the number can double with each reference.
 */
const maxSteps = 5_000;

/** The names of the allowed types; `undefined` if the schema does not restrict them. */
type Types = ReadonlySet<PyValue> | undefined;

/** A question about the types that a schema allows. */
interface Question {
  /** The parameter that the question is about. Absent for the schema's own value. */
  readonly key?: string;
  /** The known values of other parameters. Alternatives of the schema that disagree with them do not count. */
  readonly known?: PyDict;
  /** The value of the parameter. If present, only the types of constants that equal it count. */
  readonly value?: PyValue;
}

/** Returns JSON Schema's name for the type of a value. Floats without a fraction are integers. */
export function jsonTypeOf(value: PyValue): string {
  return typeof value === "number" && Number.isInteger(value) ? "integer" : schemaTypeOf(value);
}

/**
 * The types that a schema allows for a parameter, through references, constants and alternatives;
 * `undefined` if it visits too many schemas.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/glm47_moe_detector.py`.
 *
 * @throws PythonError if the engine raises on a broken schema.
 */
export function typesOfParameter(schema: PyValue | undefined, question: Question): Types {
  return withinSteps(maxSteps, (budget) =>
    typesOf(schema, { ...question, root: schema, seen: new Set(), budget }),
  );
}

interface Search extends Question {
  readonly root: PyValue | undefined;
  readonly seen: ReadonlySet<PyDict>;
  readonly budget: StepBudget;
}

function typesOf(schema: PyValue | undefined, search: Search): Types {
  search.budget.spend();
  if (!isPyDict(schema) || search.seen.has(schema)) return undefined;
  const inner = { ...search, seen: new Set([...search.seen, schema]) };
  const own =
    search.key === undefined
      ? [declaredTypes(schema), constantTypes(schema, search.value)]
      : [
          typesOf(fieldOf(schema, search.key), {
            root: search.root,
            seen: inner.seen,
            budget: search.budget,
            ...valueOf(search),
          }),
        ];
  const found = [
    typesOf(resolve(schema.get("$ref"), search.root), inner),
    ...own,
    ...["anyOf", "oneOf"].map((keyword) => typesOfAny(schema.get(keyword), inner)),
    ...listOf(schema.get("allOf")).map((part) => typesOf(part, inner)),
  ].filter((types) => types !== undefined);
  const [first, ...rest] = found;
  if (first === undefined) return undefined;
  return new Set([...first].filter((type) => rest.every((types) => types.has(type))));
}

function valueOf({ value }: Question): Question {
  return value === undefined ? {} : { value };
}

function listOf(value: PyValue | undefined): readonly PyValue[] {
  return isPyList(value) ? value : [];
}

function fieldOf(schema: PyDict, key: string): PyValue | undefined {
  const properties = schema.get("properties") ?? (schema.has("properties") ? null : new Map());
  if (isPyDict(properties)) return properties.get(key);
  const type = pythonTypeName(properties);
  throw new PythonError("AttributeError", `'${type}' object has no attribute 'get'`);
}

function declaredTypes(schema: PyDict): Types {
  const type = schema.get("type");
  if (typeof type === "string") return new Set(type === "number" ? [type, "integer"] : [type]);
  if (!isPyList(type)) return undefined;
  if (type.some((item) => isPyList(item) || isPyDict(item))) {
    throw new PythonError("TypeError", "unhashable type");
  }
  return new Set(type.includes("number") ? [...type, "integer"] : type);
}

function constantTypes(schema: PyDict, value: PyValue | undefined): Types {
  const allowed = schema.has("const") ? [schema.get("const") ?? null] : schema.get("enum");
  if (!isPyList(allowed)) return undefined;
  const equal = allowed.filter((item) => value === undefined || isJsonEqual(value, item));
  return new Set(equal.map(jsonTypeOf));
}

function typesOfAny(branches: PyValue | undefined, search: Search): Types {
  const { key, known } = search;
  const fitting = listOf(branches).filter(
    (branch) => key === undefined || agrees(branch, search, known ?? new Map()),
  );
  const alternatives = fitting.map((branch) => typesOf(branch, search));
  if (alternatives.length === 0 || alternatives.includes(undefined)) return undefined;
  return new Set(alternatives.flatMap((types) => [...(types ?? [])]));
}

/** True if this alternative allows the known parameters. */
function agrees(branch: PyValue, { root, budget }: Search, known: PyDict): boolean {
  return [...known].every(([key, value]) => {
    const types = typesOf(branch, { key, value, root, seen: new Set(), budget });
    return types === undefined || types.has(jsonTypeOf(value));
  });
}

function isJsonEqual(left: PyValue, right: PyValue): boolean {
  if (jsonTypeOf(left) !== jsonTypeOf(right)) return false;
  if (isPyDict(left) && isPyDict(right)) {
    return (
      left.size === right.size &&
      [...left].every(([key, value]) => {
        const other = right.get(key);
        return other !== undefined && isJsonEqual(value, other);
      })
    );
  }
  if (isPyList(left) && isPyList(right)) {
    return (
      left.length === right.length &&
      left.every((item, index) => isJsonEqual(item, right[index] as PyValue))
    );
  }
  return pythonEquals(left, right);
}

/** Resolves a reference within the document. */
function resolve(reference: PyValue | undefined, root: PyValue | undefined): PyValue | undefined {
  if (reference === "#") return root;
  if (typeof reference !== "string" || !reference.startsWith("#/")) return undefined;
  let target = root;
  for (const escaped of reference.slice(2).split("/")) {
    const part = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    if (isPyList(target)) {
      const index = Number(catchPython(() => parsePythonInt(part)));
      target = target.at(index);
    } else {
      target = isPyDict(target) ? target.get(part) : undefined;
    }
    if (target === undefined) return undefined;
  }
  return target;
}

/** True if the type of some parameter depends on the values of others. */
export function dependsOnOthers(schema: PyValue | undefined): boolean {
  const keys = new Set<string>();
  const seen = new Set<PyDict>();
  let hasUnion = false;
  const visit = (node: PyValue | undefined): void => {
    if (!isPyDict(node) || seen.has(node)) return;
    seen.add(node);
    const properties = node.get("properties");
    if (isPyDict(properties)) for (const key of properties.keys()) keys.add(key);
    visit(resolve(node.get("$ref"), schema));
    for (const keyword of ["anyOf", "oneOf", "allOf"]) {
      const branches = node.get(keyword);
      if (!isPyList(branches)) continue;
      hasUnion ||= keyword !== "allOf";
      branches.forEach(visit);
    }
  };
  visit(schema);
  if (!hasUnion) return false;
  return [...keys].some((key) => {
    const types = typesOfParameter(schema, { key });
    return types === undefined || (types.size > 1 && !isNumeric(types));
  });
}

/** True for the types of a number. */
export function isNumeric(types: ReadonlySet<PyValue>): boolean {
  return types.size === 2 && types.has("number") && types.has("integer");
}
