import { eventLogContract } from "../../contracts/event-log.ts";
import { sqliteHarness } from "./rig.ts";

eventLogContract("sqlite", sqliteHarness);
