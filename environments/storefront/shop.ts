import { CopyOnWriteTable } from "../../src/environment/state/copy-on-write-table.ts";

/** Who buys. */
export interface Customer {
  readonly name: string;
  readonly postcode: string;
  readonly orderIds: readonly string[];
}

/** What is sold. */
export interface Product {
  /** Such as `Velmor`. */
  readonly name: string;
  /** Such as `lamp`. */
  readonly kind: string;
  /** Item ids by color; `sold out` where there is none to be had. */
  readonly items: Readonly<Record<string, string>>;
}

/** What was bought, as every episode may read it. */
export interface Order {
  readonly id: string;
  readonly status: "pending" | "shipped" | "delivered" | "cancelled";
  /** The day of arrival; of a delivered order, the day it came. */
  readonly date: string;
  /** Whole days since the delivery; 0 before it. */
  readonly daysSinceDelivery: number;
  readonly address: string;
  /** Such as `$86`. */
  readonly total: string;
  /** Descriptions by item id, such as `blue Velmor lamp`. */
  readonly items: Readonly<Record<string, string>>;
  readonly returnedIds: readonly string[];
}

/** An order as the episode that changed it owns it. */
export type OwnOrder = { -readonly [Key in keyof Order]: Order[Key] };

/** What a task's shop looks like before anyone speaks. JSON-able. */
export interface ShopRecords {
  readonly customers: readonly Customer[];
  readonly products: readonly Product[];
  readonly orders: readonly Order[];
}

/** One episode's shop. Customers and products never change; orders are copied when written. */
export interface Shop {
  readonly customers: readonly Customer[];
  readonly products: readonly Product[];
  readonly orders: CopyOnWriteTable<Order, OwnOrder>;
}

/** Opens a shop for one episode: copies no record. */
export function openShop({ customers, products, orders }: ShopRecords): Shop {
  const base = new Map<string, Order>();
  for (const order of orders) base.set(order.id, order);
  return { customers, products, orders: new CopyOnWriteTable({ base, copy: copyOrder }) };
}

function copyOrder(order: Order): OwnOrder {
  return { ...order };
}

/** Everything in a shop that can change, as text: equal texts, equal states. */
export function shopState({ orders }: Shop): string {
  return JSON.stringify([...orders.entries()].map(([, order]) => order));
}

/** What can differ in an order. */
export const changeable = [
  "status",
  "address",
  "items",
  "returnedIds",
] as const satisfies (keyof Order)[];

/** Whether two shops of the same records are in equal states. Only orders that were written can differ. */
export function isSameState(left: Shop, right: Shop): boolean {
  return isSameWhereWritten(left, right) && isSameWhereWritten(right, left);
}

function isSameWhereWritten(written: Shop, other: Shop): boolean {
  for (const [id, order] of written.orders.changes) {
    if (!isSameOrder(order ?? undefined, other.orders.get(id))) return false;
  }
  return true;
}

function isSameOrder(left: Order | undefined, right: Order | undefined): boolean {
  return changeable.every((field) => isSameIn(field, left, right));
}

/** Whether two states of an order are alike in what can differ. */
export function isSameIn(
  field: (typeof changeable)[number],
  left: Order | undefined,
  right: Order | undefined,
): boolean {
  const [was, is] = [left?.[field], right?.[field]];
  // What was not written is the very same.
  return was === is || JSON.stringify(was) === JSON.stringify(is);
}
