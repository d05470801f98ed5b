/** Packages, or modules of theirs, that come without types. */
declare module "cluster-key-slot" {
  /** The slot of a cluster that has a key. */
  export default function slotOf(key: string): number;
}
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
