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

/** The ranks of the keywords in the order of checking. */
export const ruleRanks: ReadonlyMap<string, number> = new Map(
  ordered.map(([keyword], rank) => [keyword, rank]),
);

/** True if a keyword has a meaning in a draft; without a draft every keyword has. */
export function applies({ since, until }: SchemaRule, draft: SchemaDraft | undefined): boolean {
  if (draft === undefined) return true;
  return (since === undefined || draft >= since) && (until === undefined || draft <= until);
}
