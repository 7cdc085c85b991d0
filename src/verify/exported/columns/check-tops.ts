import { isTokenId } from "../../../engine/token-id.ts";
import { quote, type RawRow } from "../../../trajectory/violation.ts";
import { memberAt } from "../exported-row.ts";
import { isMissing } from "./is-missing.ts";

const place = "metadata.opd_student_top_logprobs";

/** Checks miles' top logprobs: a list for each id of the response, empty where the id was not sampled. */
export function checkTops(record: RawRow, has: Map<string, boolean>): readonly string[] {
  const tops = memberAt(record, place);
  const missing = isMissing(has, { place, name: place, value: tops });
  if (tops === undefined) return missing;
  const mask = memberAt(record, "loss_mask");
  const count = Array.isArray(mask) ? mask.length : 0;
  if (!Array.isArray(tops) || tops.length !== count) {
    return [...missing, `${place} is no list over the ${count} ids of the response`];
  }
  const wrong = tops.findIndex((own, index) => !isTop(own, (mask as unknown[])[index] === 1));
  if (wrong < 0) return missing;
  return [
    ...missing,
    `${place}[${wrong}] is ${quote(tops[wrong])}, expected [logprob, id, null], best first`,
  ];
}

function isTop(own: unknown, isTrained: boolean): boolean {
  if (!Array.isArray(own) || own.length > 0 !== isTrained) return false;
  let before = 0;
  return own.every((entry: unknown) => {
    const [logprob, id, text] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    const isNext = typeof logprob === "number" && logprob <= before;
    if (isNext) before = logprob;
    return isNext && isTokenId(id) && text === null;
  });
}
