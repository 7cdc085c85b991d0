import type { Message } from "../../src/message.ts";
import type { Wish } from "./goal.ts";
import { readPhrase, type Slots } from "./phrase.ts";
import {
  completeRequestPhrases,
  replyPhrases,
  requestPhrases,
  spellOut,
  thingPhrases,
  whichPhrases,
} from "./user-phrases.ts";

/** The customer's current request, as far as it was said. */
export interface Request {
  readonly type: Wish["type"];
  readonly order?: string;
  readonly item?: string;
  readonly address?: string;
  readonly color?: string;
}

/** A customer as `find_customer` shows one. */
interface SeenCustomer {
  readonly orders: readonly string[];
}

/** A product as `get_product` shows one. */
interface SeenProduct {
  /** Name and kind, such as `Velmor lamp`. */
  readonly product: string;
  readonly items: Readonly<Record<string, string>>;
}

/** An order as `get_order` shows one. */
export interface SeenOrder {
  readonly order: string;
  readonly status: string;
  readonly delivered_days_ago?: number;
  readonly arrives?: string;
  readonly address: string;
  readonly total: string;
  readonly items: Readonly<Record<string, string>>;
}

/** A call and its result. */
interface SeenCall {
  readonly name: string;
  readonly argumentsText: string;
  readonly isError: boolean;
}

/** All facts that an attentive reader finds in a conversation. */
export interface ConversationFacts {
  readonly identity: { readonly name: string; readonly postcode: string } | undefined;
  /** The order ids of the customer who was found; `undefined` before. */
  readonly customerOrderIds: readonly string[] | undefined;
  readonly orders: ReadonlyMap<string, SeenOrder>;
  /** Item ids by color, by product name. */
  readonly products: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly request: Request | undefined;
  /** The customer's last answer to a proposal for this request. */
  readonly consent: "yes" | "no" | undefined;
  /** The calls since this request was brought up, and the calls before it. */
  readonly calls: readonly SeenCall[];
}

type Draft = { -readonly [Key in keyof ConversationFacts]: ConversationFacts[Key] };

/** Reads a conversation in which `createStorefrontUser()` is the customer. */
export function readConversation(messages: readonly Message[]): ConversationFacts {
  const orders = new Map<string, SeenOrder>();
  const products = new Map<string, Readonly<Record<string, string>>>();
  const facts: Draft = {
    identity: undefined,
    customerOrderIds: undefined,
    orders,
    products,
    request: undefined,
    consent: undefined,
    calls: [],
  };
  for (const [index, message] of messages.entries()) {
    if (message.role === "user") readUserLine(facts, message.content);
    if (message.role !== "tool") continue;
    const { name, content } = message;
    const isError = content.startsWith("Error");
    facts.calls = [...facts.calls, { name, argumentsText: askedFor(messages, index), isError }];
    if (isError) continue;
    const result: unknown = JSON.parse(content);
    if (name === "find_customer") facts.customerOrderIds = (result as SeenCustomer).orders;
    if (name === "get_order") orders.set((result as SeenOrder).order, result as SeenOrder);
    if (name === "get_product") {
      const { product, items } = result as SeenProduct;
      products.set(product.split(" ")[0] ?? "", items);
    }
  }
  return facts;
}

/** The arguments of the call that the tool message at an index answers. */
function askedFor(messages: readonly Message[], index: number): string {
  const answer = messages[index];
  if (answer?.role !== "tool") return "";
  for (const message of messages.slice(0, index).toReversed()) {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const call = calls.find(({ id }) => id === answer.toolCallId);
    if (call !== undefined) return call.argumentsText;
  }
  return "";
}

function readUserLine(facts: Draft, line: string): void {
  const identity = readPhrase(replyPhrases.identity, line);
  if (identity?.["name"] !== undefined && identity["postcode"] !== undefined) {
    facts.identity = { name: identity["name"], postcode: identity["postcode"] };
  }
  const request = readRequest(line);
  if (request !== undefined) {
    facts.request = request;
    facts.consent = undefined;
    facts.calls = [];
    return;
  }
  if (facts.request === undefined) return;
  const { address } = readPhrase(replyPhrases.address, line) ?? {};
  if (address !== undefined) facts.request = { ...facts.request, address };
  const { color } = readPhrase(replyPhrases.color, line) ?? {};
  if (color !== undefined) facts.request = { ...facts.request, color };
  if (readPhrase(replyPhrases.yes, line) !== undefined) facts.consent = "yes";
  if (readPhrase(replyPhrases.no, line) !== undefined) facts.consent = "no";
}

function readRequest(line: string): Request | undefined {
  for (const { type, phrases } of requestTable) {
    const slots: Slots | undefined = readPhrase(phrases, line);
    if (slots !== undefined) return { type, ...slots };
  }
  return undefined;
}

/** Every phrase for each kind of request, complete ones first. */
const requestTable = (Object.keys(requestPhrases) as Wish["type"][]).map((type) => ({
  type,
  phrases: [...(completeRequestPhrases[type] ?? []), ...requestPhrases[type]].flatMap((phrase) =>
    [...whichPhrases.known, ...whichPhrases.unknown].flatMap((which) =>
      [...thingPhrases.known, ...thingPhrases.unknown].map((thing) =>
        spellOut(phrase, which, thing),
      ),
    ),
  ),
}));
