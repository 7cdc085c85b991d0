import type { Shop } from "./shop.ts";
import { callTool } from "./tools.ts";

/** What a customer wants done. */
export type Wish =
  | { readonly type: "arrival" }
  | { readonly type: "total" }
  | { readonly type: "destination" }
  | { readonly type: "cancel" }
  | { readonly type: "readdress"; readonly address: string }
  | { readonly type: "exchange"; readonly color: string }
  | { readonly type: "return" }
  | { readonly type: "discount" };

/** A wish, what it is about, and how it ends where the agent keeps to the policy. */
export interface Goal {
  readonly wish: Wish;
  readonly orderId: string;
  /** Whether the customer knows the order's number, or only what is in it. */
  readonly knowsOrderId: boolean;
  readonly itemId: string;
  /** The item in words, such as `blue Velmor lamp`. */
  readonly item: string;
  readonly end: GoalEnd;
}

/** How a goal ends. */
export type GoalEnd =
  /** The agent says what was asked. */
  | { readonly type: "answered"; readonly answer: string }
  /** The agent proposes, the customer agrees, the agent calls the tool. */
  | { readonly type: "done"; readonly call: WriteCall }
  /** The policy forbids it. */
  | { readonly type: "refused" }
  /** The policy allows it, and the customer says no when asked. */
  | { readonly type: "declined" };

/** The one call that fulfils a goal. */
export interface WriteCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** Brings the shop into the state that the goals ask for. */
export function fulfil(shop: Shop, goals: readonly Goal[]): void {
  for (const { end } of goals) {
    if (end.type === "done") {
      callTool(shop, end.call.name, new Map(Object.entries(end.call.arguments)));
    }
  }
}

/** What the agent has to have said at some time. */
export function wantedOutputs(goals: readonly Goal[]): readonly string[] {
  return goals.flatMap(({ end }) => (end.type === "answered" ? [end.answer] : []));
}

/** The goals as a model user is told them. */
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
