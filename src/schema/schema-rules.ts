import { arrayRules, unevaluatedItems } from "./array-rules.ts";
import { combiningRules } from "./combining-rules.ts";
import { objectRules, unevaluatedProperties } from "./object-rules.ts";
import type { SchemaDraft } from "./schema-draft.ts";
import type { SchemaRule } from "./schema-rule.ts";
import { valueRules } from "./value-rules.ts";

const ordered: readonly (readonly [keyword: string, rule: SchemaRule])[] = [
  ...valueRules,
  ...objectRules,
  ...arrayRules,
  ...combiningRules,
  ["unevaluatedProperties", unevaluatedProperties],
  ["unevaluatedItems", unevaluatedItems],
];

/** The keywords that are checked. */
export const schemaRules: ReadonlyMap<string, SchemaRule> = new Map(ordered);

/** The places of the keywords in the order in which they are checked. */
export const ruleRanks: ReadonlyMap<string, number> = new Map(
  ordered.map(([keyword], rank) => [keyword, rank]),
);

/** Tells if a keyword means anything in a draft; without a draft each one does. */
export function applies({ since, until }: SchemaRule, draft: SchemaDraft | undefined): boolean {
  if (draft === undefined) return true;
  return (since === undefined || draft >= since) && (until === undefined || draft <= until);
}
