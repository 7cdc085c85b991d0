import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { add, multiply, subtract } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate, lengthOf } from "../../../packages/python-values/src/iterate.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import type {
  MutableDict,
  MutableValue,
} from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import { pythonStr } from "../../../packages/python-values/src/text/str.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { dict, listForMethod } from "../containers.ts";
import type { RecordTable } from "../record-table.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { bookFlight } from "./bookable-flight.ts";
import { sumOf } from "./sum-of.ts";

const parameters = [
  "user_id",
  "origin",
  "destination",
  "flight_type",
  "cabin",
  "flights",
  "passengers",
  "payment_methods",
  "total_baggages",
  "nonfree_baggages",
  "insurance",
] as const;

type Booking = Readonly<Record<(typeof parameters)[number], PyValue>>;

/** The price of a bag beyond the free ones. */
const baggagePrice = 50n;
/** The price of the insurance for one passenger. */
const insurancePrice = 30n;

/**
 * Payments are taken one by one before the reservation is stored: if one fails, the earlier ones stay taken. A
 * fourth booking takes the third one's id and place.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/book_reservation.py.
 */
export const bookReservation = defineTool({
  name: "book_reservation",
  className: "BookReservation",
  parameters,
  run(database: AirlineDatabase, booking) {
    const found = findRecord(database.users, booking.user_id);
    if (found === undefined) return "Error: user not found";
    const reservation = newReservation(freeReservationId(database.reservations), booking);
    const price = totalPrice(database, reservation, booking);
    if (typeof price === "string") return price;
    const refusal = refusePayments(found, booking, price);
    if (refusal !== undefined) return refusal;

    const user = ownRecord(database.users, booking.user_id);
    for (const payment of iterate(booking.payment_methods)) takePayment(user, payment);
    const id = reservation.get("reservation_id") as string;
    database.reservations.set(id, reservation);
    listForMethod(getItem(user, "reservations"), "append").push(id);
    return stringifyPythonJson(reservation);
  },
});

function freeReservationId(reservations: RecordTable): string {
  return ["HATHAT", "HATHAU"].find((id) => !reservations.has(id)) ?? "HATHAV";
}

function newReservation(id: string, booking: Booking): MutableDict {
  return dict({
    reservation_id: id,
    user_id: copyValue(booking.user_id),
    origin: copyValue(booking.origin),
    destination: copyValue(booking.destination),
    flight_type: copyValue(booking.flight_type),
    cabin: copyValue(booking.cabin),
    flights: copyValue(booking.flights),
    passengers: copyValue(booking.passengers),
    payment_history: copyValue(booking.payment_methods),
    created_at: "2024-05-15T15:00:00",
    total_baggages: copyValue(booking.total_baggages),
    nonfree_baggages: copyValue(booking.nonfree_baggages),
    insurance: copyValue(booking.insurance),
  });
}

/** The reservation's price, or the reason why a flight is not bookable; completes the reservation's flights. */
function totalPrice(
  database: AirlineDatabase,
  reservation: MutableDict,
  { cabin, passengers, nonfree_baggages, insurance }: Booking,
): PyNumber | string {
  const passengerCount = (): number => lengthOf(passengers);
  let price: PyNumber = 0n;
  for (const flight of iterate(getItem(reservation, "flights")) as readonly MutableValue[]) {
    const booked = bookFlight(database, flight, { cabin, passengerCount });
    if (booked.type === "refused") return booked.why;
    price = add(price, booked.price, "+=");
  }
  if (insurance === "yes") price = add(price, insurancePrice * BigInt(passengerCount()));
  return add(price, multiply(baggagePrice, nonfree_baggages), "+=");
}

/** The original's reason for refusing the payments; `undefined` if they are accepted. */
function refusePayments(
  user: PyDict,
  { payment_methods: payments }: Booking,
  price: PyNumber,
): string | undefined {
  for (const payment of iterate(payments)) {
    const id = getItem(payment, "payment_id");
    const amount = getItem(payment, "amount");
    const own = getItem(user, "payment_methods");
    if (!contains(own, id)) return `Error: payment method ${pythonStr(id)} not found`;
    const method = getItem(own, id);
    if (
      contains(["gift_card", "certificate"], getItem(method, "source")) &&
      lessThan(getItem(method, "amount"), amount)
    ) {
      return `Error: not enough balance in payment method ${pythonStr(id)}`;
    }
  }
  const paid = sumOf(payments, "amount");
  if (pythonEquals(paid, price)) return undefined;
  return (
    `Error: payment amount does not add up, total price is ${pythonStr(price)}, ` +
    `but paid ${pythonStr(paid)}`
  );
}

/** Takes a payment. Gift cards lose the amount; certificates are used up, without change. */
function takePayment(user: MutableDict, payment: PyValue): void {
  const id = getItem(payment, "payment_id");
  const amount = getItem(payment, "amount");
  const methods = getItem(user, "payment_methods") as MutableDict;
  const method = getItem(methods, id);
  const source = getItem(method, "source");
  if (source === "gift_card") {
    setItem(method, "amount", subtract(getItem(method, "amount"), amount, "-="));
  } else if (source === "certificate") {
    methods.delete(id as string);
  }
}
