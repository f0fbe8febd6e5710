// The page of two captures is complete as it comes; its links keep the address of the explorer.
import "./api.js";
