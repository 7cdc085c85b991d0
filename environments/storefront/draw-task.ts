import { type Random, createSeededRandom } from "../../src/environment/seeded-random.ts";
import { drawPlans, orderStatus, type Plan } from "./draw-plans.ts";
import type { Goal, GoalEnd, Wish } from "./goal.ts";
import type { Customer, Order, Product, ShopRecords } from "./shop.ts";
import { sparseRecord } from "./sparse-record.ts";
import { colors, kinds, type Split, Words } from "./words.ts";

/** The data of a storefront task. JSON-able. */
export interface StorefrontData {
  /** From 1 (one question) to 5 (two requests, order numbers forgotten). */
  readonly level: number;
  readonly records: ShopRecords;
  readonly customer: { readonly name: string; readonly postcode: string };
  /** The customer's first, wrong postcode, if they confuse it. */
  readonly wrongPostcode?: string;
  /** The goals in the order in which the customer brings them up. */
  readonly goals: readonly Goal[];
}

/** The number of levels; the task at an index has level `1 + index % levelCount`. */
const levelCount = 5;

/** Draws the task at an index of a split: always the same one. */
export function drawTask(split: Split, index: number): StorefrontData {
  const random = createSeededRandom(`storefront/${split}/${index}`);
  const words = new Words(random, split);
  const level = 1 + (index % levelCount);
  const plans = drawPlans(level, random);
  const customer = { name: words.person(), postcode: words.postcode() };
  const products: Product[] = [];
  const owned: Order[] = [];
  const strange: Order[] = [];
  const goals: Goal[] = [];
  const drawing = { random, words, products };
  for (const plan of plans) {
    const drawn = drawOrder(orderStatus(plan, random), drawing);
    const order =
      plan.end === "late"
        ? { ...drawn.order, daysSinceDelivery: random.between(31, 99) }
        : drawn.order;
    (plan.end === "stranger" ? strange : owned).push(order);
    goals.push(toGoal(plan, { order, bought: drawn.bought }, drawing));
  }
  const any = ["pending", "shipped", "delivered"] as const;
  while (owned.length < 2 || (owned.length === 2 && random.chance(0.3))) {
    owned.push(drawOrder(random.pick(any), drawing).order);
  }
  if (strange.length === 0) strange.push(drawOrder("pending", drawing).order);
  const customers = random.shuffle<Customer>([
    { ...customer, orderIds: random.shuffle(owned.map(({ id }) => id)) },
    { name: words.person(), postcode: words.postcode(), orderIds: strange.map(({ id }) => id) },
  ]);
  return {
    level,
    records: { customers, products, orders: [...owned, ...strange] },
    customer,
    ...(level >= 3 && random.chance(0.15) && { wrongPostcode: words.postcode() }),
    goals,
  };
}

/** The inputs for drawing records. */
interface Drawing {
  readonly random: Random;
  readonly words: Words;
  /** Each order adds its products. */
  readonly products: Product[];
}

/** A product's color, with the item's id. */
type Choice = readonly [color: string, itemId: string];

/** An item of an order, and the product's choices in the product's own order. */
interface Bought {
  readonly itemId: string;
  /** Such as `blue Velmor lamp`. */
  readonly item: string;
  readonly choices: readonly Choice[];
}

/** An order, with its items sorted by id. */
interface DrawnOrder {
  readonly order: Order;
  readonly bought: readonly Bought[];
}

function drawOrder(status: Order["status"], { random, words, products }: Drawing): DrawnOrder {
  const bought: Bought[] = [];
  for (let count = random.between(1, 2); count > 0; count--) {
    const choices = drawChoices(random, words);
    const product = { name: words.product(), kind: random.pick(kinds), items: toItems(choices) };
    products.push(product);
    const [color, itemId] = random.pick(choices.filter(([, id]) => id !== soldOut));
    bought.push({ itemId, item: `${color} ${product.name} ${product.kind}`, choices });
  }
  bought.sort((left, right) => Number(left.itemId) - Number(right.itemId));
  const order: Order = {
    id: words.orderId(),
    status,
    date: words.date(),
    daysSinceDelivery: status === "delivered" ? random.between(1, 30) : 0,
    address: words.address(),
    total: `$${random.between(10, 199)}`,
    items: sparseRecord(bought.map(({ itemId, item }) => [itemId, item])),
    returnedIds: [],
  };
  return { order, bought };
}

/** Replaces the item id of a product that is unavailable. */
const soldOut = "sold out";

/** Draws four colors, one of them sold out. */
function drawChoices(random: Random, words: Words): readonly Choice[] {
  const drawn = random.shuffle(colors);
  const choices: Choice[] = [];
  for (let place = 1; place < 4; place++) choices.push([drawn[place] as string, words.itemId()]);
  choices.push([drawn[0] as string, soldOut]);
  return random.shuffle(choices);
}

/** Same as `Object.fromEntries()`, which takes four times as long. */
function toItems(choices: readonly Choice[]): Readonly<Record<string, string>> {
  const items: Record<string, string> = {};
  for (const [color, itemId] of choices) items[color] = itemId;
  return items;
}

/** Makes the customer's goal for an order, with its end. */
function toGoal(plan: Plan, { order, bought }: DrawnOrder, { random, words }: Drawing): Goal {
  const { itemId, item, choices } = random.pick(bought);
  const wantsSoldOut = plan.end === "sold-out";
  const [color, newItemId] = random.pick(
    choices.filter(([, id]) => id !== itemId && (id === soldOut) === wantsSoldOut),
  );
  const wish: Wish =
    plan.wish === "readdress"
      ? { type: plan.wish, address: words.address() }
      : plan.wish === "exchange"
        ? { type: plan.wish, color }
        : { type: plan.wish };
  const end = toEnd(plan, { wish, order, itemId, newItemId });
  return { wish, orderId: order.id, knowsOrderId: plan.knowsOrderId, itemId, item, end };
}

function toEnd(
  plan: Plan,
  about: {
    readonly wish: Wish;
    readonly order: Order;
    readonly itemId: string;
    readonly newItemId: string;
  },
): GoalEnd {
  if (plan.end === "declined") return { type: "declined" };
  if (plan.end !== "answered" && plan.end !== "done") return { type: "refused" };
  const { wish, order, itemId: item, newItemId: new_item } = about;
  switch (wish.type) {
    case "arrival":
      return { type: "answered", answer: order.date };
    case "total":
      return { type: "answered", answer: order.total };
    case "destination":
      return { type: "answered", answer: order.address };
    case "cancel":
      return { type: "done", call: { name: "cancel_order", arguments: { order: order.id } } };
    case "readdress": {
      const given = { order: order.id, address: wish.address };
      return { type: "done", call: { name: "change_address", arguments: given } };
    }
    case "exchange": {
      const given = { order: order.id, item, new_item };
      return { type: "done", call: { name: "change_item", arguments: given } };
    }
    case "return":
      return { type: "done", call: { name: "return_item", arguments: { order: order.id, item } } };
    case "discount":
      return { type: "refused" };
  }
}
