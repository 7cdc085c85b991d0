import { CopyOnWriteTable } from "../../src/environment/state/copy-on-write-table.ts";

/** Who buys. */
export interface Customer {
  readonly name: string;
  readonly postcode: string;
  readonly orderIds: readonly string[];
}

/** A product with its variants. */
export interface Product {
  /** Such as `Velmor`. */
  readonly name: string;
  /** Such as `lamp`. */
  readonly kind: string;
  /** Item ids by color; `sold out` for an unavailable one. */
  readonly items: Readonly<Record<string, string>>;
}

/** An order, read-only. */
export interface Order {
  readonly id: string;
  readonly status: "pending" | "shipped" | "delivered" | "cancelled";
  /** The day of arrival; for a delivered order, the day of delivery. */
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

/** An order that its episode may change. */
export type OwnOrder = { -readonly [Key in keyof Order]: Order[Key] };

/** The initial state of a task's shop. JSON-able. */
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

/** All mutable state of a shop as text: equal texts mean equal states. */
export function shopState({ orders }: Shop): string {
  return JSON.stringify([...orders.entries()].map(([, order]) => order));
}

/** The fields of an order that can change. */
export const changeable = [
  "status",
  "address",
  "items",
  "returnedIds",
] as const satisfies (keyof Order)[];

/** True if two shops with the same records are in equal states. Only written orders can differ. */
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

/** True if two states of an order are equal in the fields that can change. */
export function isSameIn(
  field: (typeof changeable)[number],
  left: Order | undefined,
  right: Order | undefined,
): boolean {
  const [was, is] = [left?.[field], right?.[field]];
  // An unwritten field is the same object.
  return was === is || JSON.stringify(was) === JSON.stringify(is);
}
