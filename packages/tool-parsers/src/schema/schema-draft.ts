import { isPyDict, type PyValue } from "../../../python-values/src/index.ts";

/** The drafts of JSON Schema with different keyword semantics, in order. */
export type SchemaDraft = 4 | 6 | 7 | 2019 | 2020;

/**
 * Returns the draft that a schema names in `$schema`; `undefined` if it names no known draft. Each keyword then has
 * the meaning of the draft that defines it.
 */
export function draftOf(schema: PyValue): SchemaDraft | undefined {
  const named = isPyDict(schema) ? schema.get("$schema") : undefined;
  if (typeof named !== "string") return undefined;
  const [, old, year] =
    /^https?:\/\/json-schema\.org\/(?:draft-0([467])|draft\/(2019-09|2020-12))\/schema#?$/.exec(
      named,
    ) ?? [];
  if (old !== undefined) return Number(old) as SchemaDraft;
  return year === undefined ? undefined : (Number(year.slice(0, 4)) as SchemaDraft);
}
