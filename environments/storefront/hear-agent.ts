import type { Goal, Wish } from "./goal.ts";
import { colors } from "./words.ts";

/** A customer's interpretation of the agent's words. */
type Heard =
  | "asks-identity"
  | "asks-address"
  | "asks-color"
  | "proposes"
  | "refuses"
  | "settles"
  | "unclear";

/** Interprets a text by its keywords, in any phrasing. */
export function hearAgent(text: string): Heard {
  const lower = text.toLowerCase();
  const asks = lower.includes("?");
  if (/postcode|your (full )?name/.test(lower)) return "asks-identity";
  if (/anything else|something else/.test(lower)) return isRefusal(lower) ? "refuses" : "settles";
  if (/\b(shall|should|can|may) i\b|want me to|like me to|confirm|is that right/.test(lower)) {
    return asks ? "proposes" : "unclear";
  }
  if (asks && /\bcolou?r\b/.test(lower)) return "asks-color";
  if (asks && /\baddress\b|^where/.test(lower)) return "asks-address";
  if (isRefusal(lower)) return "refuses";
  return asks || lower.trim() === "" ? "unclear" : "settles";
}

function isRefusal(lower: string): boolean {
  return /\bsorry\b|\bcannot\b|\bcan't\b|\bunable\b|not possible/.test(lower);
}

/** The pattern of a proposal for each kind of request; questions need no proposal. */
const proposalPatterns: Readonly<Record<Wish["type"], RegExp>> = {
  arrival: /$^/,
  total: /$^/,
  destination: /$^/,
  discount: /$^/,
  cancel: /cancel/i,
  readdress: /address|send|deliver/i,
  exchange: /change|swap/i,
  return: /return|back/i,
};

/** True if a proposal differs from the goal: another act, order, item, address or color. */
export function misunderstands(proposal: string, goal: Goal): boolean {
  const { orderId, knowsOrderId, item, wish } = goal;
  if (!proposalPatterns[wish.type].test(proposal)) return true;
  const namesOther = (pattern: RegExp, meant: string) => {
    const named: readonly string[] = proposal.match(pattern) ?? [];
    return named.length > 0 && !named.includes(meant);
  };
  if (knowsOrderId && namesOther(/\b\d{4}\b/g, orderId)) return true;
  if (namesOther(/[a-z]+ [A-Z][a-z]+ [a-z]+(?= (in|from|of|to)\b)/g, item)) return true;
  if (wish.type === "readdress") {
    return namesOther(/\d+ [A-Z][a-z]+ [A-Z][a-z]+/g, wish.address);
  }
  if (wish.type !== "exchange") return false;
  const others = proposal.replaceAll(item, "");
  return colors.some((color) => others.includes(color)) && !others.includes(wish.color);
}
