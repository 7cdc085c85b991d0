import type { PyNumber } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { multiply } from "../../../packages/python-values/src/numbers/arithmetic.ts";
import { contains } from "../../../packages/python-values/src/contains.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import type { MutableValue } from "../../../packages/python-values/src/mutable-value.ts";
import { copyValue } from "../../../packages/python-values/src/mutable-value.ts";
import { setItem } from "../../../packages/python-values/src/set-item.ts";
import { pythonStr } from "../../../packages/python-values/src/text/str.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { findRecord } from "../record-table.ts";
import type { AirlineDatabase } from "./airline-database.ts";

/** The wanted number of seats, and the cabin. */
interface Seats {
  readonly cabin: PyValue;
  /** Called at the point where the original takes the length, which raises if the passengers have none. */
  readonly passengerCount: () => number;
}

/** The flight's price for all passengers, or the reason why it is not bookable. */
export type BookableFlight =
  | { readonly type: "booked"; readonly price: PyNumber }
  | { readonly type: "refused"; readonly why: string };

/**
 * Looks up a wanted flight (an object with `flight_number` and `date`), checks it, and writes its price, origin and
 * destination into the object. Seats are checked but never taken.
 *
 * @throws PythonError if the object, the cabin or a key is invalid.
 */
export function bookFlight(
  { flights }: AirlineDatabase,
  flight: MutableValue,
  { cabin, passengerCount }: Seats,
): BookableFlight {
  const number = getItem(flight, "flight_number");
  const data = findRecord(flights, number);
  if (data === undefined) return refused(`flight ${pythonStr(number)} not found`);
  const dates = getItem(data, "dates");
  const date = getItem(flight, "date");
  if (!contains(dates, date)) {
    return refused(`flight ${pythonStr(number)} not found on date ${pythonStr(date)}`);
  }
  const entry = getItem(dates, date);
  if (getItem(entry, "status") !== "available") {
    return refused(`flight ${pythonStr(number)} not available on date ${pythonStr(date)}`);
  }
  const seatCount = getItem(getItem(entry, "available_seats"), cabin);
  if (lessThan(seatCount, BigInt(passengerCount()))) {
    return refused(`not enough seats on flight ${pythonStr(number)}`);
  }
  const price = getItem(getItem(entry, "prices"), cabin);
  setItem(flight, "price", copyValue(price));
  setItem(flight, "origin", copyValue(getItem(data, "origin")));
  setItem(flight, "destination", copyValue(getItem(data, "destination")));
  return {
    type: "booked",
    price: multiply(price as PyNumber, BigInt(passengerCount())) as PyNumber,
  };
}

function refused(problem: string): BookableFlight {
  return { type: "refused", why: `Error: ${problem}` };
}
