import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { add, multiply, subtract } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate, lengthOf } from "../../../packages/python-values/src/iterate.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { MutableValue } from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { findRecord, ownRecord } from "../record-table.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import type { BookableFlight } from "./bookable-flight.ts";
import { bookFlight } from "./bookable-flight.ts";
import { deductFromGiftCard, recordChangePayment, refuseChangePayment } from "./change-payment.ts";
import { sumOf } from "./sum-of.ts";

/**
 * Flights that are already in the reservation, in the same cabin, keep their price. The cabin itself is never
 * written.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/update_reservation_flights.py.
 */
export const updateReservationFlights = defineTool({
  name: "update_reservation_flights",
  className: "UpdateReservationFlights",
  parameters: ["reservation_id", "cabin", "flights", "payment_id"],
  run(database: AirlineDatabase, { reservation_id, cabin, flights: wanted, payment_id }) {
    const found = findRecord(database.reservations, reservation_id);
    if (found === undefined) return "Error: reservation not found";
    const flights = copyValue(wanted);
    let totalPrice: PyNumber = 0n;
    for (const flight of iterate(flights) as readonly MutableValue[]) {
      const booked =
        keepFlight(found, flight, cabin) ??
        bookFlight(database, flight, {
          cabin,
          passengerCount: () => lengthOf(getItem(found, "passengers")),
        });
      if (booked.type === "refused") return booked.why;
      totalPrice = add(totalPrice, booked.price, "+=");
    }
    totalPrice = subtract(totalPrice, oldPrice(found), "-=");
    const payment = { reservation: found, paymentId: payment_id, totalPrice };
    const refusal = refuseChangePayment(database, payment);
    if (refusal !== undefined) return refusal;

    deductFromGiftCard(database, payment);
    const reservation = ownRecord(database.reservations, reservation_id);
    reservation.set("flights", flights);
    recordChangePayment(reservation, payment);
    return stringifyPythonJson(reservation);
  },
});

/** The price of a flight that is already in the reservation; `undefined` for another flight. */
function keepFlight(
  reservation: PyDict,
  flight: MutableValue,
  cabin: PyValue,
): BookableFlight | undefined {
  const kept = iterate(getItem(reservation, "flights")).filter(
    (own) =>
      pythonEquals(getItem(own, "flight_number"), getItem(flight, "flight_number")) &&
      pythonEquals(getItem(own, "date"), getItem(flight, "date")) &&
      pythonEquals(cabin, getItem(reservation, "cabin")),
  )[0];
  if (kept === undefined) return undefined;
  const price = getItem(kept, "price");
  const total = multiply(price as PyNumber, passengerCount(reservation)) as PyNumber;
  setItem(flight, "price", copyValue(price));
  setItem(flight, "origin", copyValue(getItem(kept, "origin")));
  setItem(flight, "destination", copyValue(getItem(kept, "destination")));
  return { type: "booked", price: total };
}

function oldPrice(reservation: PyDict): PyNumber {
  const sum = sumOf(getItem(reservation, "flights"), "price");
  return multiply(sum, passengerCount(reservation)) as PyNumber;
}

function passengerCount(reservation: PyDict): bigint {
  return BigInt(lengthOf(getItem(reservation, "passengers")));
}
