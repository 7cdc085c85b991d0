import { calculate } from "../calculate.ts";
import { getUserDetails } from "../get-user-details.ts";
import type { TauDomain } from "../tau-domain.ts";
import { toolMap } from "../tau-domain.ts";
import { think } from "../think.ts";
import { transferToHumanAgents } from "../transfer-to-human-agents.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { bookReservation } from "./book-reservation.ts";
import { cancelReservation } from "./cancel-reservation.ts";
import { getReservationDetails } from "./get-reservation-details.ts";
import { listAllAirports } from "./list-all-airports.ts";
import { searchDirectFlight } from "./search-direct-flight.ts";
import { searchOnestopFlight } from "./search-onestop-flight.ts";
import { sendCertificate } from "./send-certificate.ts";
import { updateReservationBaggages } from "./update-reservation-baggages.ts";
import { updateReservationFlights } from "./update-reservation-flights.ts";
import { updateReservationPassengers } from "./update-reservation-passengers.ts";

/** τ-bench's airline: 14 tools over flights, reservations and users. */
export const airlineDomain: TauDomain<AirlineDatabase> = {
  name: "airline",
  tableNames: ["flights", "reservations", "users"],
  splits: ["test"],
  tools: toolMap<AirlineDatabase>([
    bookReservation,
    calculate,
    cancelReservation,
    getReservationDetails,
    getUserDetails,
    listAllAirports,
    searchDirectFlight,
    searchOnestopFlight,
    sendCertificate,
    think,
    transferToHumanAgents,
    updateReservationBaggages,
    updateReservationFlights,
    updateReservationPassengers,
  ]),
};
