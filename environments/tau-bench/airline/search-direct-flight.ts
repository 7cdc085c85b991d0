import { contains } from "../../../src/python/contains.ts";
import { pythonEquals } from "../../../src/python/equals.ts";
import { getItem } from "../../../src/python/get-item.ts";
import { stringifyPythonJson } from "../../../src/python/json/json-stringify.ts";
import type { PyValue } from "../../../src/python/value.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { flightOnDate, isAvailable } from "./flight-on-date.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/search_direct_flight.py. */
export const searchDirectFlight = defineTool({
  name: "search_direct_flight",
  className: "SearchDirectFlight",
  parameters: ["origin", "destination", "date"],
  run({ flights }: AirlineDatabase, { origin, destination, date }) {
    const results: PyValue[] = [];
    for (const [, flight] of flights.entries()) {
      if (
        pythonEquals(getItem(flight, "origin"), origin) &&
        pythonEquals(getItem(flight, "destination"), destination) &&
        contains(getItem(flight, "dates"), date) &&
        isAvailable(flight, date)
      ) {
        results.push(flightOnDate(flight, date));
      }
    }
    return stringifyPythonJson(results);
  },
});
