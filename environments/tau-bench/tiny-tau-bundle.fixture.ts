import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { airlineDomain } from "./airline/airline-domain.ts";
import { createTauAirline } from "./airline/create-tau-airline.ts";
import { loadTauBenchBundle } from "./bundle.ts";
import { createTauRetail } from "./retail/create-tau-retail.ts";
import { retailDomain } from "./retail/retail-domain.ts";
import type { TauEnvironment } from "./tau-environment.ts";

const address = `{"address1": "1 Main St", "address2": "", "city": "Here", "country": "USA", "state": "CA", "zip": "10001"}`;

/** Two users, three orders and two products, made up and small enough to read. */
const retail: Readonly<Record<string, string>> = {
  "orders.json": `{
    "#W1": {"order_id": "#W1", "user_id": "ann_lee_1", "address": ${address},
      "items": [
        {"name": "Lamp", "product_id": "11", "item_id": "101", "price": 20.5, "options": {"color": "red"}},
        {"name": "Lamp", "product_id": "11", "item_id": "102", "price": 25.0, "options": {"color": "blue"}}],
      "fulfillments": [], "status": "pending",
      "payment_history": [{"transaction_type": "payment", "amount": 45.5, "payment_method_id": "gift_card_1"}]},
    "#W2": {"order_id": "#W2", "user_id": "ann_lee_1", "address": ${address},
      "items": [
        {"name": "Lamp", "product_id": "11", "item_id": "101", "price": 20.5, "options": {"color": "red"}},
        {"name": "Rug", "product_id": "9", "item_id": "91", "price": 80, "options": {}}],
      "fulfillments": [], "status": "delivered",
      "payment_history": [{"transaction_type": "payment", "amount": 100.5, "payment_method_id": "credit_card_1"}]},
    "#W3": {"order_id": "#W3", "user_id": "bo_ray_2", "address": ${address},
      "items": [{"name": "Rug", "product_id": "9", "item_id": "91", "price": 80, "options": {}}],
      "fulfillments": [], "status": "pending",
      "payment_history": [{"transaction_type": "payment", "amount": 80, "payment_method_id": "paypal_2"}]}
  }`,
  "products.json": `{
    "11": {"name": "Lamp", "product_id": "11", "variants": {
      "103": {"item_id": "103", "options": {"color": "green"}, "available": true, "price": 30.25},
      "101": {"item_id": "101", "options": {"color": "red"}, "available": true, "price": 20.5},
      "102": {"item_id": "102", "options": {"color": "blue"}, "available": false, "price": 25.0}}},
    "9": {"name": "Rug", "product_id": "9", "variants": {
      "91": {"item_id": "91", "options": {}, "available": true, "price": 80},
      "92": {"item_id": "92", "options": {"size": "L"}, "available": true, "price": 95}}}
  }`,
  "users.json": `{
    "ann_lee_1": {"name": {"first_name": "Ann", "last_name": "Lee"}, "address": ${address},
      "email": "Ann@example.com",
      "payment_methods": {
        "gift_card_1": {"source": "gift_card", "balance": 5, "id": "gift_card_1"},
        "credit_card_1": {"source": "credit_card", "brand": "visa", "last_four": "1234", "id": "credit_card_1"}},
      "orders": ["#W1", "#W2"]},
    "bo_ray_2": {"name": {"first_name": "Bo", "last_name": "Ray"}, "address": ${address},
      "email": "bo@example.com",
      "payment_methods": {
        "paypal_2": {"source": "paypal", "id": "paypal_2"},
        "gift_card_2": {"source": "gift_card", "balance": 247.0, "id": "gift_card_2"}},
      "orders": ["#W3"]}
  }`,
  "tasks_test.json": `[
    {"annotator": "0", "user_id": "ann_lee_1", "instruction": "You are Ann Lee. Cancel order #W1.",
      "actions": [
        {"name": "get_order_details", "kwargs": {"order_id": "#W1"}},
        {"name": "cancel_pending_order", "kwargs": {"order_id": "#W1", "reason": "no longer needed"}}],
      "outputs": []},
    {"annotator": "0", "user_id": "bo_ray_2", "instruction": "You are Bo Ray. Ask what the rug cost.",
      "actions": [{"name": "transfer_to_human_agents", "kwargs": {"summary": "done"}}],
      "outputs": ["1080", "Rug"]}
  ]`,
  "tasks_train.json": "[]",
  "tasks_dev.json": "[]",
  "wiki.md": "# Shop policy\n",
  "rules.json": `["Be kind."]`,
};

const airline: Readonly<Record<string, string>> = {
  "flights.json": `{
    "F1": {"flight_number": "F1", "origin": "AAA", "destination": "BBB",
      "scheduled_departure_time_est": "08:00:00", "scheduled_arrival_time_est": "10:00:00",
      "dates": {
        "2024-05-09": {"status": "available", "available_seats": {"economy": 2, "business": 0}, "prices": {"economy": 100, "business": 300}},
        "2024-05-10": {"status": "delayed"}}},
    "F2": {"flight_number": "F2", "origin": "BBB", "destination": "CCC",
      "scheduled_departure_time_est": "11:00:00", "scheduled_arrival_time_est": "01:00:00+1",
      "dates": {
        "2024-05-09": {"status": "available", "available_seats": {"economy": 9, "business": 9}, "prices": {"economy": 50, "business": 90}},
        "2024-05-10": {"status": "available", "available_seats": {"economy": 9, "business": 9}, "prices": {"economy": 55, "business": 95}}}}
  }`,
  "reservations.json": `{
    "R00001": {"reservation_id": "R00001", "user_id": "cy_fox_3", "origin": "AAA", "destination": "BBB",
      "flight_type": "one_way", "cabin": "economy",
      "flights": [{"origin": "AAA", "destination": "BBB", "flight_number": "F1", "date": "2024-05-09", "price": 90}],
      "passengers": [{"first_name": "Cy", "last_name": "Fox", "dob": "1990-01-01"}],
      "payment_history": [{"payment_id": "credit_card_3", "amount": 90}],
      "created_at": "2024-05-01T00:00:00", "total_baggages": 1, "nonfree_baggages": 0, "insurance": "no"}
  }`,
  "users.json": `{
    "cy_fox_3": {"name": {"first_name": "Cy", "last_name": "Fox"}, "address": ${address},
      "email": "cy@example.com", "dob": "1990-01-01",
      "payment_methods": {
        "credit_card_3": {"source": "credit_card", "brand": "visa", "last_four": "9999", "id": "credit_card_3"},
        "gift_card_3": {"source": "gift_card", "amount": 120, "id": "gift_card_3"},
        "certificate_3": {"source": "certificate", "amount": 100, "id": "certificate_3"}},
      "saved_passengers": [], "membership": "gold", "reservations": ["R00001"]}
  }`,
  "tasks_test.json": `[
    {"annotator": "0", "user_id": "cy_fox_3", "instruction": "You are Cy Fox. Cancel R00001.",
      "actions": [{"name": "cancel_reservation", "kwargs": {"reservation_id": "R00001"}}],
      "outputs": []}
  ]`,
  "wiki.md": "# Airline policy\n",
  "rules.json": "[]",
};

const domains = [
  { domain: retailDomain, files: retail },
  { domain: airlineDomain, files: airline },
];

/**
 * Writes a small bundle of made-up data in τ-bench's layout into a new temporary folder.
 *
 * @param changes - Texts of files to write instead, by path such as `retail/users.json`.
 * @returns the folder.
 */
export async function writeTinyTauBundle(
  changes: Readonly<Record<string, string>> = {},
): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "tiny-tau-bench-"));
  for (const { domain, files } of domains) {
    const tools = [...domain.tools.values()].map(({ name, parameters }) => ({
      type: "function",
      function: {
        name,
        parameters: {
          type: "object",
          properties: Object.fromEntries(parameters.map((parameter) => [parameter, {}])),
          required: parameters,
        },
      },
    }));
    const all = {
      ...files,
      "tools.json": JSON.stringify(tools),
      "terminate_tools.json": `["transfer_to_human_agents"]`,
    };
    await mkdir(path.join(directory, domain.name));
    for (const [name, text] of Object.entries(all)) {
      const file = `${domain.name}/${name}`;
      await writeFile(path.join(directory, file), changes[file] ?? text);
    }
  }
  return directory;
}

/** The environments of a small bundle. Disposing of them removes it. */
export interface TinyTau extends AsyncDisposable {
  readonly folder: string;
  readonly retail: TauEnvironment;
  readonly airline: TauEnvironment;
}

/** Writes a small bundle, with the changes of `writeTinyTauBundle()`, and opens its environments. */
export async function openTinyTau(
  changes: Readonly<Record<string, string>> = {},
): Promise<TinyTau> {
  const folder = await writeTinyTauBundle(changes);
  const bundle = await loadTauBenchBundle(folder);
  return {
    folder,
    retail: createTauRetail({ bundle }),
    airline: createTauAirline({ bundle }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}
