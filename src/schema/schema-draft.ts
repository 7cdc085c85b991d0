import { isPyDict, type PyValue } from "../python/value.ts";

/** The drafts of JSON Schema that differ in what keywords mean, in their order. */
export type SchemaDraft = 4 | 6 | 7 | 2019 | 2020;

/**
 * The draft that a schema names in `$schema`; `undefined` where it names none, or one that is not known:
 * then each keyword means what the draft says that has it.
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
