import { compareForSort } from "../values/template-compare.ts";
import type { GetFromItem } from "./template-item-getter.ts";
import { isTruthy } from "../values/template-iterate.ts";
import type { TemplateList, TemplateValue } from "../values/template-value.ts";

/** Python's `sorted(items, key=…, reverse=…)`. @throws TemplateError if the keys cannot be ordered. */
export function sortBy(
  items: TemplateList,
  key: GetFromItem,
  reverse: TemplateValue,
): TemplateList {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  // Python keeps the order of equal items, also with `reverse`.
  const sign = isTruthy(reverse) ? -1 : 1;
  keyed.sort((left, right) => sign * compareForSort(left.key, right.key));
  return keyed.map(({ item }) => item);
}
