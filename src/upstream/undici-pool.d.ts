/** undici has no types for its single modules. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
