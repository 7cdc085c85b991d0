import type { Message } from "../../src/message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { agentPhrases } from "./agent-phrases.ts";
import {
  type ConversationFacts,
  readConversation,
  type Request,
  type SeenOrder,
} from "./conversation-facts.ts";
import type { WriteCall } from "./goal.ts";
import type { Slots } from "./phrase.ts";

/** The next turn that the policy text requires. */
export type ExpertTurn =
  | { readonly type: "say"; readonly phrase: keyof typeof agentPhrases; readonly slots: Slots }
  | ({ readonly type: "call" } & WriteCall);

/**
 * Decides the next turn by the shop's policy, from the conversation alone. With `assumedConsent`, decides as if the
 * customer had just given that answer to a proposal.
 */
export function decideTurn(messages: readonly Message[], assumedConsent?: "yes"): ExpertTurn {
  const read = readConversation(messages);
  const facts = assumedConsent === undefined ? read : { ...read, consent: assumedConsent };
  const { identity, request } = facts;
  if (identity === undefined) return say("askIdentity");
  if (facts.customerOrderIds === undefined) {
    const find = call("find_customer", identity);
    return hasFailed(find, facts) ? say("unknownCustomer") : find;
  }
  if (request === undefined) return say("askIdentity");
  if (request.type === "discount") return say("refuseDiscount");
  const found = findOrder(request, facts.customerOrderIds, facts);
  return "order" in found ? settle(request, found.order, facts) : found.turn;
}

/** The order of the request, or the turn that leads to it. */
function findOrder(
  { order: id, item }: Request,
  customerOrderIds: readonly string[],
  { orders }: ConversationFacts,
): { readonly order: SeenOrder } | { readonly turn: ExpertTurn } {
  if (id !== undefined && !customerOrderIds.includes(id)) {
    return { turn: say("refuseStranger", { order: id }) };
  }
  for (const candidate of id === undefined ? customerOrderIds : [id]) {
    const order = orders.get(candidate);
    if (order === undefined) return { turn: call("get_order", { order: candidate }) };
    if (item === undefined || Object.values(order.items).includes(item)) return { order };
  }
  return { turn: say("refuseUnknown") };
}

function settle(request: Request, order: SeenOrder, facts: ConversationFacts): ExpertTurn {
  const { order: id, status, address, arrives: date = "", total } = order;
  switch (request.type) {
    case "arrival":
      return say("answerArrival", { order: id, date });
    case "total":
      return say("answerTotal", { order: id, total });
    case "destination":
      return say("answerDestination", { order: id, address });
    case "discount":
      return say("refuseDiscount");
    case "cancel":
      if (hasWritten("cancel_order", facts)) return say("doneCancel", { order: id });
      if (status !== "pending") return say("refuseStatus", { order: id, status });
      return propose("proposeCancel", call("cancel_order", { order: id }), { order: id }, facts);
    case "readdress":
      return settleAddress(request, order, facts);
    case "exchange":
      return settleExchange(request, order, facts);
    case "return":
      return settleReturn(request, order, facts);
  }
}

function settleAddress(
  { address }: Request,
  { order, status }: SeenOrder,
  facts: ConversationFacts,
): ExpertTurn {
  if (hasWritten("change_address", facts)) {
    return say("doneReaddress", { order, address: address ?? "" });
  }
  if (status !== "pending") return say("refuseStatus", { order, status });
  if (address === undefined) return say("askAddress");
  const write = call("change_address", { order, address });
  return propose("proposeReaddress", write, { order, address }, facts);
}

function settleExchange(
  { item = "", color }: Request,
  { order, status, items }: SeenOrder,
  facts: ConversationFacts,
): ExpertTurn {
  if (hasWritten("change_item", facts)) return say("doneExchange", { color: color ?? "" });
  if (status !== "pending") return say("refuseStatus", { order, status });
  if (color === undefined) return say("askColor");
  const [, product = "", kind = ""] = item.split(" ");
  const itemIds = facts.products.get(product);
  if (itemIds === undefined) return call("get_product", { product });
  const new_item = itemIds[color];
  if (new_item === undefined || new_item === "sold out") {
    return say("refuseSoldOut", { product: `${product} ${kind}`, color });
  }
  const write = call("change_item", { order, item: itemIdOf(item, items), new_item });
  return propose("proposeExchange", write, { order, item, color }, facts);
}

function settleReturn(
  { item = "" }: Request,
  { order, status, items, delivered_days_ago: days = 0 }: SeenOrder,
  facts: ConversationFacts,
): ExpertTurn {
  if (hasWritten("return_item", facts)) return say("doneReturn", { item });
  if (status !== "delivered") return say("refuseStatus", { order, status });
  if (days > 30) return say("refuseLate", { days: String(days) });
  const write = call("return_item", { order, item: itemIdOf(item, items) });
  return propose("proposeReturn", write, { order, item }, facts);
}

/** Proposes the write, performs it after a yes, and drops it after a no. */
function propose(
  phrase: keyof typeof agentPhrases,
  write: ExpertTurn & { readonly type: "call" },
  slots: Slots,
  facts: ConversationFacts,
): ExpertTurn {
  if (facts.consent === "no") return say("leaveIt");
  if (facts.consent === undefined) return say(phrase, slots);
  return hasFailed(write, facts) ? say("refuseUnknown") : write;
}

function itemIdOf(item: string, items: Readonly<Record<string, string>>): string {
  return Object.keys(items).find((id) => items[id] === item) ?? "";
}

function hasWritten(name: string, { calls }: ConversationFacts): boolean {
  return calls.some((made) => made.name === name && !made.isError);
}

/** True if the latest call is this call and was refused. */
function hasFailed({ name, arguments: given }: WriteCall, { calls }: ConversationFacts): boolean {
  const last = calls.at(-1);
  const text = stringifyPythonJson(new Map(Object.entries(given)), { ensureAscii: false });
  return last?.name === name && last.isError && last.argumentsText === text;
}

function say(phrase: keyof typeof agentPhrases, slots: Slots = {}): ExpertTurn {
  return { type: "say", phrase, slots };
}

function call(
  name: string,
  given: Readonly<Record<string, string>>,
): ExpertTurn & { readonly type: "call" } {
  return { type: "call", name, arguments: given };
}
