import type { Shop } from "./shop.ts";
import { callTool } from "./tools.ts";

/** A customer's request. */
export type Wish =
  | { readonly type: "arrival" }
  | { readonly type: "total" }
  | { readonly type: "destination" }
  | { readonly type: "cancel" }
  | { readonly type: "readdress"; readonly address: string }
  | { readonly type: "exchange"; readonly color: string }
  | { readonly type: "return" }
  | { readonly type: "discount" };

/** A request, its order and item, and its end if the agent follows the policy. */
export interface Goal {
  readonly wish: Wish;
  readonly orderId: string;
  /** True if the customer knows the order's number, false if only its content. */
  readonly knowsOrderId: boolean;
  readonly itemId: string;
  /** The item in words, such as `blue Velmor lamp`. */
  readonly item: string;
  readonly end: GoalEnd;
}

/** The end of a goal. */
export type GoalEnd =
  /** The agent gives the requested information. */
  | { readonly type: "answered"; readonly answer: string }
  /** The agent proposes, the customer agrees, the agent calls the tool. */
  | { readonly type: "done"; readonly call: WriteCall }
  /** The policy forbids it. */
  | { readonly type: "refused" }
  /** The policy allows it, and the customer says no when asked. */
  | { readonly type: "declined" };

/** The call that fulfils a goal. */
export interface WriteCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** Changes the shop to the state that the goals require. */
export function fulfil(shop: Shop, goals: readonly Goal[]): void {
  for (const { end } of goals) {
    if (end.type === "done") {
      callTool(shop, end.call.name, new Map(Object.entries(end.call.arguments)));
    }
  }
}

/** The texts that the agent must say at some point. */
export function wantedOutputs(goals: readonly Goal[]): readonly string[] {
  return goals.flatMap(({ end }) => (end.type === "answered" ? [end.answer] : []));
}

/** The goals as instructions for a model user. */
export function toInstruction(
  { name, postcode }: { readonly name: string; readonly postcode: string },
  goals: readonly Goal[],
): string {
  const wishes = goals.map((goal, index) => {
    const known = goal.knowsOrderId
      ? `order ${goal.orderId}`
      : `the order with the ${goal.item} (you do not know its number)`;
    const then = index === 0 ? "First you" : "Then you";
    return `${then} ${describeWish(goal)} (${known}). ${endings[goal.end.type]}`;
  });
  return `You are ${name}, postcode ${postcode}. ${wishes.join(" ")} Then you leave.`;
}

const endings: Readonly<Record<GoalEnd["type"], string>> = {
  answered: "You want a precise answer.",
  done: "You agree when you are asked.",
  refused: "If you are refused, you accept it.",
  declined: "When you are asked to confirm, you change your mind and say no.",
};

function describeWish({ wish, item }: Goal): string {
  switch (wish.type) {
    case "arrival":
      return "ask when an order arrives";
    case "total":
      return "ask how much an order cost in total";
    case "destination":
      return "ask which address an order goes to";
    case "cancel":
      return "want to cancel an order";
    case "readdress":
      return `want an order sent to ${wish.address} instead`;
    case "exchange":
      return `want the ${item} changed to ${wish.color}`;
    case "return":
      return `want to return the ${item}`;
    case "discount":
      return "want a discount on an order";
  }
}
