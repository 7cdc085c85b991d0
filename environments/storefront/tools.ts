import { briefText } from "../../src/environment/brief-value.ts";
import { toolFromOpenAi, type ToolDefinition } from "../../src/message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { type PlainJson, type PyDict, toPyValue } from "../../packages/python-values/src/value.ts";
import type { OwnOrder, Shop } from "./shop.ts";
import { sparseRecord } from "./sparse-record.ts";

/** A tool's answer. */
interface ToolAnswer {
  readonly text: string;
  /** True if the call was a mistake and changed nothing. */
  readonly isError: boolean;
}

/** A tool: its definition for the model, and its function. All parameters are required strings. */
interface ShopTool {
  readonly definition: ToolDefinition;
  readonly parameterNames: readonly string[];
  /** `given[i]` is the value of `parameterNames[i]`. A refusal changes nothing. */
  run(shop: Shop, given: readonly string[]): ToolAnswer;
}

/** Each function gets the arguments in the order of the names before it. */
const tools: readonly ShopTool[] = [
  defineTool("find_customer", "Find a customer.", ["name", "postcode"], (shop, name, postcode) => {
    const found = shop.customers.find((one) => one.name === name && one.postcode === postcode);
    if (found === undefined) return refuse("no such customer");
    return answer({ customer: found.name, orders: found.orderIds });
  }),

  defineTool("get_order", "Look up an order.", ["order"], (shop, id) => {
    const order = shop.orders.get(id);
    if (order === undefined) return refuse(`no order ${id}`);
    const { status, date, daysSinceDelivery, address, total, items } = order;
    const time =
      status === "delivered" ? { delivered_days_ago: daysSinceDelivery } : { arrives: date };
    return answer({ order: id, status, ...time, address, total, items });
  }),

  defineTool("get_product", "List the colors of a product.", ["product"], (shop, name) => {
    const product = shop.products.find((one) => one.name === name);
    if (product === undefined) return refuse(`no product ${name}`);
    return answer({ product: `${name} ${product.kind}`, items: product.items });
  }),

  defineTool("cancel_order", "Cancel a pending order.", ["order"], (shop, id) =>
    change(shop, id, "pending", (order) => {
      order.status = "cancelled";
      return answer({ order: id, status: "cancelled" });
    }),
  ),

  defineTool(
    "change_address",
    "Send a pending order elsewhere.",
    ["order", "address"],
    (shop, id, address) =>
      change(shop, id, "pending", (order) => {
        order.address = address;
        return answer({ order: id, address });
      }),
  ),

  defineTool(
    "change_item",
    "Change an item of a pending order.",
    ["order", "item", "new_item"],
    (shop, id, item, newItem) =>
      change(shop, id, "pending", (order) => {
        const product = shop.products.find((one) => Object.values(one.items).includes(newItem));
        const color = Object.keys(product?.items ?? {}).find((c) => product?.items[c] === newItem);
        if (product === undefined || color === undefined || newItem === "sold out") {
          return refuse(`no item ${newItem}`);
        }
        if (!Object.hasOwn(order.items, item)) return refuse(`no item ${item} in order ${id}`);
        if (order.items[item]?.includes(product.name) !== true) {
          return refuse("not the same product");
        }
        const kept = Object.entries(order.items).filter(([id]) => id !== item);
        const changed = `${color} ${product.name} ${product.kind}`;
        order.items = sparseRecord([...kept, [newItem, changed]]);
        return answer({ order: id, items: order.items });
      }),
  ),

  defineTool(
    "return_item",
    "Take back an item of a delivered order.",
    ["order", "item"],
    (shop, id, item) =>
      change(shop, id, "delivered", (order) => {
        if (!Object.hasOwn(order.items, item)) return refuse(`no item ${item} in order ${id}`);
        if (order.returnedIds.includes(item)) return refuse(`item ${item} is returned already`);
        order.returnedIds = [...order.returnedIds, item];
        return answer({ order: id, returned: order.returnedIds });
      }),
  ),
];

const toolsByName: ReadonlyMap<string, ShopTool> = new Map(
  tools.map((tool) => [tool.definition.name, tool]),
);

/** The shop's tools, as the model sees them. */
export const toolDefinitions: readonly ToolDefinition[] = tools.map(({ definition }) => definition);

/** Performs a call. Every name and every arguments get an answer. */
export function callTool(shop: Shop, name: string, given: PyDict): ToolAnswer {
  const tool = toolsByName.get(name);
  if (tool === undefined) return refuse(`no tool ${name}`);
  const values: string[] = [];
  for (const parameter of tool.parameterNames) {
    const value = given.get(parameter);
    if (typeof value !== "string") return refuse(`${name} needs ${parameter}, a string`);
    values.push(value);
  }
  return tool.run(shop, values);
}

/** Changes an order if its status allows the change. */
function change(
  shop: Shop,
  id: string,
  status: OwnOrder["status"],
  write: (order: OwnOrder) => ToolAnswer,
): ToolAnswer {
  const shared = shop.orders.get(id);
  if (shared !== undefined && shared.status !== status) {
    return refuse(`order ${id} is ${shared.status}`);
  }
  const own = shop.orders.own(id);
  return own === undefined ? refuse(`no order ${id}`) : write(own);
}

function answer(value: PlainJson): ToolAnswer {
  return { text: stringifyPythonJson(toPyValue(value), { ensureAscii: false }), isError: false };
}

/** Refuses a call. The reason must not repeat the arguments, which may have any length. */
function refuse(why: string): ToolAnswer {
  return { text: briefText(`Error: ${why}`), isError: true };
}

function defineTool(
  name: string,
  description: string,
  parameterNames: readonly string[],
  run: (shop: Shop, ...given: string[]) => ToolAnswer,
): ShopTool {
  const properties = Object.fromEntries(parameterNames.map((key) => [key, { type: "string" }]));
  const parameters = { type: "object", properties, required: parameterNames };
  const openai = toPyValue({ type: "function", function: { name, description, parameters } });
  return {
    definition: toolFromOpenAi(openai, `storefront tool ${name}`),
    parameterNames,
    run: (shop, given) => run(shop, ...given),
  };
}
