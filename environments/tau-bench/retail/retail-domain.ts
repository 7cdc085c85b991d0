import { calculate } from "../calculate.ts";
import { getUserDetails } from "../get-user-details.ts";
import type { TauDomain } from "../tau-domain.ts";
import { toolMap } from "../tau-domain.ts";
import { think } from "../think.ts";
import { transferToHumanAgents } from "../transfer-to-human-agents.ts";
import { cancelPendingOrder } from "./cancel-pending-order.ts";
import { exchangeDeliveredOrderItems } from "./exchange-delivered-order-items.ts";
import { findUserIdByEmail } from "./find-user-id-by-email.ts";
import { findUserIdByNameZip } from "./find-user-id-by-name-zip.ts";
import { getOrderDetails } from "./get-order-details.ts";
import { getProductDetails } from "./get-product-details.ts";
import { listAllProductTypes } from "./list-all-product-types.ts";
import { modifyPendingOrderAddress } from "./modify-pending-order-address.ts";
import { modifyPendingOrderItems } from "./modify-pending-order-items.ts";
import { modifyPendingOrderPayment } from "./modify-pending-order-payment.ts";
import { modifyUserAddress } from "./modify-user-address.ts";
import type { RetailDatabase } from "./retail-database.ts";
import { returnDeliveredOrderItems } from "./return-delivered-order-items.ts";

/** τ-bench's online shop: 16 tools over orders, products and users. */
export const retailDomain: TauDomain<RetailDatabase> = {
  name: "retail",
  tableNames: ["orders", "products", "users"],
  splits: ["test", "train", "dev"],
  tools: toolMap<RetailDatabase>([
    calculate,
    cancelPendingOrder,
    exchangeDeliveredOrderItems,
    findUserIdByEmail,
    findUserIdByNameZip,
    getOrderDetails,
    getProductDetails,
    getUserDetails,
    listAllProductTypes,
    modifyPendingOrderAddress,
    modifyPendingOrderItems,
    modifyPendingOrderPayment,
    modifyUserAddress,
    returnDeliveredOrderItems,
    think,
    transferToHumanAgents,
  ]),
};
