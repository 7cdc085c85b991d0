import type { Random } from "../../src/environment/seeded-random.ts";
import type { Wish } from "./goal.ts";
import type { Order } from "./shop.ts";

const questions = ["arrival", "total", "destination"] as const;
const changes = ["cancel", "readdress", "exchange", "return"] as const;
const forbidden = ["status", "late", "sold-out", "stranger", "discount"] as const;

/** A reason for which the policy forbids a request. */
type Forbidden = (typeof forbidden)[number];

/** The decisions made before any name or number is drawn. */
export interface Plan {
  readonly wish: Wish["type"];
  /** The end of the goal, or the reason for which it is refused. */
  readonly end: "answered" | "done" | "declined" | Forbidden;
  /** True if the customer knows the order's number, false if only its content. */
  readonly knowsOrderId: boolean;
}

/** Draws a customer's requests for a task, by the task's level (1 to 5). */
export function drawPlans(level: number, random: Random): readonly Plan[] {
  const ask = (knowsOrderId: boolean): Plan => ({
    wish: random.pick(questions),
    end: "answered",
    knowsOrderId,
  });
  const write = (knowsOrderId: boolean): Plan => ({
    wish: random.pick(changes),
    end: random.chance(0.15) ? "declined" : "done",
    knowsOrderId,
  });
  const refused = (): Plan => {
    const end = random.pick(forbidden);
    const knowsOrderId = end === "stranger" || random.chance(0.7);
    return { wish: forbiddenWish(end, random), end, knowsOrderId };
  };
  switch (level) {
    case 1:
      return [ask(true)];
    case 2:
      return [write(true)];
    case 3:
      return [random.chance(0.3) ? ask(false) : write(false)];
    case 4:
      return [refused(), random.chance(0.7) ? ask(true) : write(true)];
    default: {
      const first = random.chance(0.2) ? refused() : write(random.chance(0.5));
      return [first, random.chance(0.5) ? ask(random.chance(0.5)) : write(random.chance(0.5))];
    }
  }
}

function forbiddenWish(end: Forbidden, random: Random): Wish["type"] {
  switch (end) {
    case "status":
      return random.pick(changes);
    case "late":
      return "return";
    case "sold-out":
      return "exchange";
    case "stranger":
      return random.pick(["cancel", "readdress", ...questions]);
    case "discount":
      return "discount";
  }
}

/** Draws a status that allows the request, or forbids it if the plan says so. */
export function orderStatus({ wish, end }: Plan, random: Random): Order["status"] {
  if (wish === "return") {
    return end === "status" ? random.pick(["pending", "shipped"]) : "delivered";
  }
  if (end === "status") return random.pick(["shipped", "delivered"]);
  if (wish === "arrival") return random.pick(["pending", "shipped"]);
  if (wish === "total" || wish === "discount") {
    return random.pick(["pending", "shipped", "delivered"]);
  }
  return "pending";
}
