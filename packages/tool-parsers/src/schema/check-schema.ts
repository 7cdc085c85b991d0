import { StepBudget, StepLimitError } from "../pattern/step-budget.ts";
import { isPyDict, type PyDict, type PyValue } from "../../../python-values/src/index.ts";
import { EvaluatedParts } from "./evaluated-parts.ts";
import { maxSchemaDepth, SchemaDocument } from "./schema-document.ts";
import { applies, ruleRanks, schemaRules } from "./schema-rules.ts";
import {
  fail,
  passOver,
  spendOnNames,
  type Mismatch,
  type RuleCheck,
  type SchemaCheck,
  type SchemaRun,
} from "./schema-rule.ts";

/** The result of a check. */
interface SchemaResult {
  readonly mismatches: readonly Mismatch[];
  /** The reason why the value was not checked. `mismatches` is empty then. */
  readonly unchecked?: string;
}

/** Maximum number of steps of one check. They take well below a second; a tool call takes a few hundred steps. */
const maxSteps = 1_000_000;

/** Prepared documents by schema. */
const documents = new WeakMap<PyDict, PreparedSchema>();

interface PreparedSchema {
  readonly document: SchemaDocument;
  readonly checks: WeakMap<PyDict, readonly RuleCheck[]>;
}

/**
 * Checks a value against a foreign JSON Schema of draft 4 to 2020-12, by the draft that it names. Unknown keywords and
 * unusable parts (`findUnusableParts()`) are ignored, and formats are not checked. A check takes a bounded number of
 * steps, runs no code generated from the schema, and loads no other document.
 */
export function checkSchema(schema: PyDict, value: PyValue): SchemaResult {
  const mismatches: Mismatch[] = [];
  const run = new Run(prepare(schema));
  try {
    run.apply(schema, { run, value, place: undefined, mismatches, evaluated: undefined });
    return { mismatches };
  } catch (error) {
    if (error instanceof StepLimitError) return { mismatches: [], unchecked: error.message };
    throw error;
  }
}

function prepare(schema: PyDict): PreparedSchema {
  let prepared = documents.get(schema);
  if (prepared === undefined) {
    prepared = { document: new SchemaDocument(schema), checks: new WeakMap() };
    documents.set(schema, prepared);
  }
  return prepared;
}

class Run implements SchemaRun {
  readonly budget = new StepBudget(maxSteps);
  passedOverCount = 0;
  readonly #prepared: PreparedSchema;
  #depth = 0;

  constructor(prepared: PreparedSchema) {
    this.#prepared = prepared;
  }

  apply(schema: PyValue, check: SchemaCheck): boolean {
    this.budget.spend();
    if (schema === false) return fail(check, "boolean schema is false");
    if (!isPyDict(schema)) return true;
    if (check.value === null && schema.get("nullable") === true) return true;
    this.#depth += 1;
    if (this.#depth > maxSchemaDepth) {
      throw new StepLimitError(`it leads through more than ${maxSchemaDepth} schemas`);
    }
    const fits = this.#prepared.document.tracksEvaluated
      ? this.#applyTracked(schema, check)
      : this.#applyRules(schema, check);
    this.#depth -= 1;
    return fits;
  }

  /** Records the evaluated parts of the value if the value fits. */
  #applyTracked(schema: PyDict, check: SchemaCheck): boolean {
    const evaluated = new EvaluatedParts();
    const fits = this.#applyRules(schema, { ...check, evaluated });
    if (fits && check.evaluated !== undefined) {
      spendOnNames(check, evaluated.count);
      check.evaluated.addAll(evaluated);
    }
    return fits;
  }

  #applyRules(schema: PyDict, check: SchemaCheck): boolean {
    let fits = true;
    for (const rule of this.#checksOf(schema)) {
      this.budget.spend();
      if (rule(check)) continue;
      fits = false;
      if (check.mismatches === undefined) break;
    }
    return fits;
  }

  #checksOf(schema: PyDict): readonly RuleCheck[] {
    const { document, checks } = this.#prepared;
    let made = checks.get(schema);
    if (made === undefined) checks.set(schema, (made = makeChecks(schema, document)));
    return made;
  }
}

function makeChecks(schema: PyDict, document: SchemaDocument): readonly RuleCheck[] {
  const { draft } = document;
  const reference = schema.get("$ref");
  // Until draft 7, a reference replaces the complete schema.
  const isReference = draft !== undefined && draft <= 7 && typeof reference === "string";
  const keywords = isReference ? ["$ref"] : [...schema.keys()];
  const ranked = keywords.flatMap((keyword) => {
    const rule = schemaRules.get(keyword);
    const given = schema.get(keyword) as PyValue;
    // Formats are not checked.
    if (keyword === "format") return [{ rank: -1, check: passOver }];
    if (rule === undefined || !applies(rule, draft)) return [];
    if (given === null && keyword !== "const") return [];
    const rank = ruleRanks.get(keyword) as number;
    if (!rule.isUsable(given, schema)) return [{ rank, check: passOver }];
    return [{ rank, check: rule.make(given, schema, document) }];
  });
  return ranked.toSorted((left, right) => left.rank - right.rank).map(({ check }) => check);
}
