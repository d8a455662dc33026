/*
 * Three everyday patterns over JDBC:
 *
 *   bill                      a scheduled job that must not overlap with itself
 *   export USER               one export at a time for each user; a second request says who makes
 *                             it
 *   webhook EVENT ID AMOUNT   webhooks: each event is handled once, however often it is delivered
 *
 * To run:
 *   javac -cp /usr/share/java/postgresql.jar Patterns.java
 *   java -cp .:/usr/share/java/postgresql.jar Patterns \
 *       'jdbc:postgresql://localhost/shop' webhook evt_1 7 12.50
 *
 * Tables: usage (customer_id bigint, amount numeric, billed boolean),
 *   invoice (customer_id bigint, total numeric), app_user (id bigint, exports integer),
 *   orders (id bigint, user_id bigint, amount numeric), webhook_event (id text PRIMARY KEY),
 *   account (id bigint, balance numeric)
 */
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

public class Patterns {
    static final String LOCK_NOT_AVAILABLE = "55P03";

    /** The lock is held: a second request is told so (409 Conflict). */
    static class Busy extends SQLException {
        Busy(String message, SQLException cause) {
            super(message, cause.getSQLState(), cause);
        }
    }

    /**
     * Does the error say that this lock is held? (A table's lock, after lock_timeout, has the same
     * SQLSTATE.)
     */
    static boolean isHeld(SQLException error, String namespace, String name) {
        if (!LOCK_NOT_AVAILABLE.equals(error.getSQLState()) || !(error instanceof PSQLException)) {
            return false;
        }
        ServerErrorMessage server = ((PSQLException) error).getServerErrorMessage();
        return server != null && namespace.equals(server.getSchema())
            && name.equals(server.getConstraint());
    }

    static String whoHolds(SQLException error) {
        return ((PSQLException) error).getServerErrorMessage().getDetail();
    }

    /**
     * The lock is the session's, for the job commits for each customer. It lasts until the
     * connection is closed; one that goes back to a pool instead has to unlock() first.
     */
    static int bill(Connection connection) throws SQLException {
        connection.setAutoCommit(true);
        try (PreparedStatement lock =
                connection.prepareStatement("SELECT advisory.lock(?, ?, '0s')")) {
            lock.setString(1, "billing");
            lock.setString(2, "nightly");
            lock.execute();
        } catch (SQLException error) {
            throw isHeld(error, "billing", "nightly") ? new Busy(whoHolds(error), error) : error;
        }
        List<Long> customers = new ArrayList<>();
        try (PreparedStatement open = connection.prepareStatement(
                "SELECT customer_id FROM usage WHERE NOT billed GROUP BY 1 ORDER BY 1");
             ResultSet rows = open.executeQuery()) {
            while (rows.next()) {
                customers.add(rows.getLong(1));
            }
        }
        try (PreparedStatement bill = connection.prepareStatement(
                "WITH new AS (UPDATE usage SET billed = true"
                + " WHERE customer_id = ? AND NOT billed RETURNING amount)"
                + " INSERT INTO invoice (customer_id, total) SELECT ?, sum(amount) FROM new")) {
            for (long customer : customers) {
                bill.setLong(1, customer);
                bill.setLong(2, customer);
                bill.executeUpdate();
            }
        }
        return customers.size();
    }

    /** The lock goes with the transaction: nothing to release, also behind a transaction pooler. */
    static void export(Connection connection, long user) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement lock = connection.prepareStatement(
                "SELECT advisory.xact_lock('export', ?, '0s')");
             PreparedStatement orders = connection.prepareStatement(
                "SELECT id, amount FROM orders WHERE user_id = ? ORDER BY id");
             PreparedStatement count = connection.prepareStatement(
                "UPDATE app_user SET exports = exports + 1 WHERE id = ?")) {
            lock.setLong(1, user);                      // 7 is a name, as "7" is
            lock.execute();
            orders.setLong(1, user);
            try (ResultSet rows = orders.executeQuery()) {
                while (rows.next()) {
                    System.out.println(rows.getLong(1) + "," + rows.getBigDecimal(2));
                }
            }
            count.setLong(1, user);
            count.executeUpdate();
            connection.commit();
        } catch (SQLException error) {
            connection.rollback();
            throw isHeld(error, "export", Long.toString(user))
                ? new Busy("an export of user " + user + " is under way: " + whoHolds(error), error)
                : error;
        }
    }

    /**
     * A lock says "not at the same time", not "only once": so what was handled is written down in
     * the same transaction, and looked at when the lock is held. That look must see what was
     * committed meanwhile: READ COMMITTED, the default.
     */
    static boolean webhook(Connection connection, String event, long account, BigDecimal amount)
            throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement lock = connection.prepareStatement(
                "SELECT advisory.xact_lock('webhook', ?, '10s')");
             PreparedStatement done = connection.prepareStatement(
                "SELECT FROM webhook_event WHERE id = ?");
             PreparedStatement pay = connection.prepareStatement(
                "UPDATE account SET balance = balance + ? WHERE id = ?");
             PreparedStatement note = connection.prepareStatement(
                "INSERT INTO webhook_event (id) VALUES (?)")) {
            lock.setString(1, event);
            lock.execute();
            done.setString(1, event);
            boolean before;
            try (ResultSet row = done.executeQuery()) {
                before = row.next();
            }
            if (!before) {
                pay.setBigDecimal(1, amount);
                pay.setLong(2, account);
                pay.executeUpdate();
                note.setString(1, event);
                note.executeUpdate();
            }
            connection.commit();
            return !before;
        } catch (SQLException error) {
            connection.rollback();
            throw isHeld(error, "webhook", event)
                ? new Busy("503, try again later: " + error.getMessage(), error) : error;
        }
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            switch (arguments[1]) {
                case "bill":
                    System.out.println("billed " + bill(connection) + " customers");
                    break;
                case "export":
                    export(connection, Long.parseLong(arguments[2]));
                    break;
                case "webhook":
                    boolean handled = webhook(connection, arguments[2],
                        Long.parseLong(arguments[3]), new BigDecimal(arguments[4]));
                    System.out.println(handled ? "handled" : "handled before");
                    break;
                default:
                    throw new IllegalArgumentException(arguments[1]);
            }
        } catch (Busy busy) {
            System.out.println(busy.getMessage());
            System.exit(75);                            // for schedulers: a failure that passes
        }
    }
}
